/* A part of one axis: rows of `wide` elements, of which `columns` from `start` on are taken.
 * Element 0 of each tensor is at `<name>_first` of its buffer. */
/* y[r * columns + i] = x[r * wide + start + i], i < columns, r < rows; bits are not changed, so
 * that they may also be token ids. Grid: one item an element of y. */
kernel void slice_forward(global uint *y, ulong y_first, global const uint *x, ulong x_first,
                          uint rows, uint wide, uint start, uint columns) {
    uint item = (uint)get_global_id(0);
    uint r = item / columns;
    if (r < rows) {
        y[y_first + item] = x[x_first + (ulong)r * wide + start + item % columns];
    }
}

/* dx (+)= dy inside of the part, 0 outside. Grid: one item an element of dx. */
kernel void slice_backward(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
                           uint rows, uint wide, uint start, uint columns, uint add) {
    uint item = (uint)get_global_id(0);
    uint r = item / wide;
    uint i = item % wide;
    if (r < rows) {
        bool inside = i >= start && i - start < columns;
        float value = inside ? dy[dy_first + (ulong)r * columns + (i - start)] : 0.0f;
        global float *to = dx + dx_first + item;
        *to = add ? *to + value : value;
    }
}
