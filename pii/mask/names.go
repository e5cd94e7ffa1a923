package mask

import "strings"

// The names below were written down for this package from general knowledge,
// not taken from a list, and are dedicated to the public domain under CC0 1.0.
// None is an English word, since a surrogate in another letter case is
// restored too, and the two lists share no name.

const givenNames = `
Adela Aino Alaric Albena Aldric Alenka Alessia Aliki Alma Alois Alvar Amadou Amalia Amparo Anahit Anatol
Andrej Anouk Ansel Antje Arantxa Arvid Asger Astrid Aurelio Axelle Aziza Balint Bartek Basile Beatriz Benedek
Berit Bettina Birgit Bogdan Boris Branka Brigitta Bruna Calista Camilo Casimir Catalina Cecilio Celestyn Chiara
Claudine Cornelis Cosima Crispin Dagmar Damir Danica Davor Delphine Desmond Dieter Dimitra Dominika Dorothea
Dragan Dusan Edda Edmund Eirik Eleni Elif Elodie Emeric Emina Enrique Ernesta Esben Estrella Eudora Evander
Fabrice Farida Fatou Federica Feliks Ferenc Filippa Finnian Florian Fredrika Gaspard Genoveva Georgina Gerlinde
Gianni Gilda Giselle Goran Gregor Greta Gunnar Gustavo Halina Hanno Harald Hedda Heiko Helmut Henrike Hilda
Horatio Hortense Ignacio Ilse Imelda Imre Inez Ingmar Ioana Irena Isidora Istvan Ivana Jacinta Jadwiga Janko
Jarek Jelena Joaquim Jolanta Jorunn Josefa Jurgen Kaisa Kamila Karsten Kasimir Katarzyna Kerstin Kirsi Klara
Konrad Kristof Ladislav Larissa Laszlo Leandro Lenka Leopold Liesel Ljuba Lorenz Lotte Luciana Ludmila Maarten
Magnus Malgosia Marcin Margit Marisol Matilda Mechthild Melchior Mirela Miroslav Nadia Natasza Nikolaj Noemi
Odile Oksana Olaf Ottilie Palmira Paulina Petronella Piotr Quirin Radovan Ragnhild Renata Roderick Rosalind
Roswitha Sabina Salvatore Sanna Sigrid Silvana Solveig Stellan Svetlana Tadeusz Tamsin Teodora Thorsten Tilda
Torvald Ulrika Urszula Valentina Vasilis Vesna Viggo Vilhelm Walburga Wenzel Wiebke Xaver Ximena Yannick Yolanda
Zdenka Zoltan Zuzana`

const familyNames = `
Aalto Abelson Adamczyk Agnelli Ahlgren Albrecht Almeida Amundsen Andrade Anselmo Arnoldsen Asplund Aubert Baczek
Balogh Baranski Bartolo Baumgart Belmonte Benitez Bergstrom Bertolini Bielak Bjerke Blomqvist Boehmer Bondarenko
Borgmann Boskovic Brandvold Breitner Brzezina Bukowski Caballero Calderon Castellan Cervantes Chmiel Clausen
Collina Cordeiro Czerny Dahlberg Dallmann Delacroix Dimitrov Dobrowski Domingues Dragomir Dubrovsky Dvorak
Ebersole Eckhardt Edlund Egeland Ekstrom Engstrand Escobedo Esposito Fagerlund Falkenrath Faragher Fernandes
Figueroa Fjeldstad Fontaine Forsberg Frankowski Freudenthal Furtado Gallardo Garibaldi Gawlik Gerstner Giordano
Glowacki Goncalves Gottlieb Grabowski Grimaldi Gronlund Guerrini Haakonsen Hallberg Hansson Hartwig Havlicek
Hedstrom Heidecker Hellstrom Hernando Hoffmeyer Holmgren Horvath Hruska Iglesias Ilievski Ingebrigt Isaksen
Jablonski Jankovic Jaramillo Jelinek Johannsen Jorgensen Kaczmarek Kallio Kaminsky Karlsson Kavanaugh Kerrigan
Kirchner Kjellberg Klimenko Kolarov Kopecky Korhonen Kowalczyk Kratochvil Krogstad Kubiak Kuznetsov Lachmann
Lagerkvist Lambrecht Larsson Lehtinen Leclercq Lindqvist Lisowski Ljungberg Lombardo Lundgren Maczynski Magnusson
Malinowski Marchetti Markovic Martinelli Matuszak Mazurek Medeiros Mikkelsen Milosevic Montalvo Morgenstern
Mulligan Nakamori Navarrete Nemeth Niedermann Nordstrom Novotny Nygaard Oberholzer Odegaard Oliveira Orlovsky
Ostrander Palmqvist Papadakis Pasternak Pellegrini Petrakis Pfeiffer Pietersen Popescu Quintana Radwanski
Rautio Reinhardt Ribeiro Rosenqvist Rossellini Rudnicki Saarinen Sandoval Santorini Schellenberg Sepulveda
Sikorski Sjoberg Skarsgard Sobczak Sorensen Stankovic Steinbach Stojanov Svensson Szymanski Takala Tavares
Thorvaldsen Tomczak Toivonen Ullmann Valderrama Vandenberg Vasquez Villanueva Vukovic Wachowski Wallenstein
Westergaard Wiechert Winterfeldt Wojcik Ybarra Zawadzki Zelenka Zielinski Zimmermann`

// nameLists are the two lists as words.
type nameLists struct{ given, family []string }

func names() nameLists {
	return nameLists{strings.Fields(givenNames), strings.Fields(familyNames)}
}
