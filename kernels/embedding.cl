/* Rows of a table by token ids; ids [positions], table and its gradient [count, columns]. A
 * position is a token of a sample, numbered through all samples. Element 0 of ids, y and dy is at
 * `<name>_first` of its buffer.
 *
 * Gradient of a row: the sum of dy over the positions with its id, in ascending order. The
 * positions of an id are a linked list: head[id] is the first one, next[position] the one after it,
 * -1 ends the list. Both are in `links`, head [count] and then next [positions]. */
#include "vec16.clh"

/* y[position] = table[ids[position]], or NaN for an id outside of [0, count).
 * Grid: one item for each 16 columns of a position, one dimension for all positions. */
kernel void embedding_forward(global float *y, ulong y_first, global const float *table,
                              global const int *ids, ulong ids_first, uint positions, uint count,
                              uint columns) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint position = item / pieces;
    uint i = item % pieces * 16;
    if (position >= positions) {
        return;
    }
    uint id = (uint)ids[ids_first + position];
    float16 row = (float16)NAN;
    if (id < count) {
        row = load16(table + (ulong)id * columns + i, columns - i, 0.0f);
    }
    store16(row, y + y_first + (ulong)position * columns + i, columns - i);
}

/* Makes a position the first of the list of its id, if this item owns the id. */
static void link_one(global int *head, global int *next, int position, int id, uint count,
                     int padding, uint item, uint items) {
    if ((uint)id < count && id != padding && (uint)id % items == item) {
        next[position] = head[id];
        head[id] = position;
    }
}

/* Makes the lists. Each item owns the ids that are congruent to its number modulo `items`, and goes
 * through all positions from the last to the first, so the lists do not depend on `items`. The id
 * `padding` (-1: none) has no list.
 * Grid: `items`. */
kernel void embedding_link(global int *links, global const int *ids, ulong ids_first,
                           uint positions, uint count, int padding, uint items) {
    uint item = (uint)get_global_id(0);
    global int *head = links;
    global int *next = links + count;
    if (item >= items) {
        return;
    }
    ids += ids_first;
    for (uint id = item; id < count; id += items) {
        head[id] = -1;
    }
    uint p = positions;
    for (; p % 16 != 0; p--) {
        link_one(head, next, (int)p - 1, ids[p - 1], count, padding, item, items);
    }
    for (; p > 0; p -= 16) {
        int block[16];
        vstore16(vload16(0, ids + p - 16), 0, block);
        for (int k = 15; k >= 0; k--) {
            link_one(head, next, (int)p - 16 + k, block[k], count, padding, item, items);
        }
    }
}

/* dtable[id] = 0 for each id without a position.
 * Grid: one item for each 16 columns of a row, one dimension for all rows. */
kernel void embedding_clear(global float *dtable, global const int *links, uint count,
                            uint columns) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint id = item / pieces;
    uint i = item % pieces * 16;
    if (id < count && links[id] < 0) {
        store16((float16)0.0f, dtable + (ulong)id * columns + i, columns - i);
    }
}

/* dtable[id] (+)= the sum of dy over the positions of the id. The item of an id's first position
 * computes it.
 * Grid: as embedding_forward. */
kernel void embedding_sum(global float *dtable, global const int *links, global const float *dy,
                          ulong dy_first, global const int *ids, ulong ids_first, uint positions,
                          uint count, uint columns, uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint position = item / pieces;
    uint i = item % pieces * 16;
    global const int *next = links + count;
    if (position >= positions) {
        return;
    }
    uint id = (uint)ids[ids_first + position];
    if (id >= count || links[id] != (int)position) {
        return;
    }
    dy += dy_first + i;
    float16 sum = (float16)0.0f;
    for (int p = (int)position; p >= 0; p = next[p]) {
        sum += load16(dy + (ulong)p * columns, columns - i, 0.0f);
    }
    put16(sum, dtable + (ulong)id * columns + i, columns - i, add);
}
