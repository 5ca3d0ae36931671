/* Style, frame and ticks of all drawings; only for drawings and the pages that contain them. */
#ifndef RP_LAB_DRAWING_H
#define RP_LAB_DRAWING_H

#include <stdio.h>

#include "lab/axis.h"

enum { RP_DRAWING_WIDTH = 480, RP_DRAWING_COLOURS = 10 };

/* Writes text for XML, between tags or in an attribute. */
void rp_drawing_text(FILE *file, const char *text);

/* Begins <svg> with a title, a note at the bottom, and its own style if standalone. */
void rp_drawing_open(FILE *file, const char *title, const char *note, double height,
                     bool standalone);

/* Begins <g> in the colour of a line; a page can hide it by class m<line>. */
void rp_drawing_group(FILE *file, uint32_t line);

/* Label of a tick. `percent`: the value is a share. */
void rp_drawing_tick(const rp_axis *axis, double tick, bool percent, char text[RP_AXIS_TEXT_BYTES]);

#endif
