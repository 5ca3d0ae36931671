/* What all drawings share: style, frame, ticks. Private to the drawings and to pages that hold
 * them.
 */
#ifndef RP_LAB_DRAWING_H
#define RP_LAB_DRAWING_H

#include <stdio.h>

#include "lab/axis.h"

enum { RP_DRAWING_WIDTH = 480, RP_DRAWING_COLOURS = 10 };

/* Text between tags or in an attribute. */
void rp_drawing_text(FILE *file, const char *text);

/* Begins <svg> with its title and, at the bottom, a note; a standalone one has its own style. */
void rp_drawing_open(FILE *file, const char *title, const char *note, double height,
                     bool standalone);

/* Begins <g> in the colour of a line; class m<line> is what a page can hide. */
void rp_drawing_group(FILE *file, uint32_t line);

/* The label of a tick; a share is shown in percent. */
void rp_drawing_tick(const rp_axis *axis, double tick, bool percent, char text[RP_AXIS_TEXT_BYTES]);

#endif
