/* Style, frame and ticks of all drawings; only for drawings and the pages that contain them. */
#ifndef RP_LAB_DRAWING_H
#define RP_LAB_DRAWING_H

#include <stdio.h>

#include "lab/axis.h"

enum { RP_DRAWING_WIDTH = 480, RP_DRAWING_COLOURS = 10 };

/* Writes text for XML, between tags or in an attribute that is quoted with ". Control characters
 * become spaces, because XML allows none. */
void rp_drawing_text(FILE *file, const char *text);

/* Begins <svg> with a title, a note at the bottom ("": no note; never NULL), and its own style if
 * standalone. `height` is in units of the SVG, of which the width has RP_DRAWING_WIDTH. The caller
 * writes </svg> and closes the file. */
void rp_drawing_open(FILE *file, const char *title, const char *note, double height,
                     bool standalone);

/* Begins <g> in the colour of a line, counted from 0; colours repeat after RP_DRAWING_COLOURS
 * lines. A page can hide the group by its class m<line>. The caller writes </g>. */
void rp_drawing_group(FILE *file, uint32_t line);

/* Writes the label of a tick. `percent`: the value is a share, and the label is 100 times as much,
 * without a "%". */
void rp_drawing_tick(const rp_axis *axis, double tick, bool percent, char text[RP_AXIS_TEXT_BYTES]);

#endif
