/* Where a step reads and writes, by its registers. Names and offsets are those of Mesa's rocket driver (registers.xml,
 * rkt_regcmd.c); units of strides, where they differ by chip, were found by looking at what the library submits. */
#include "stand_in.h"

uint32_t value(const struct registers *registers, unsigned offset) {
    return registers->block[offset >> 12][(offset & 0xfff) / 4];
}

/* Bits [low, low + count) of a register. */
uint32_t field(const struct registers *registers, unsigned offset, unsigned low, unsigned count) {
    return value(registers, offset) >> low & (uint32_t)((1ull << count) - 1);
}

/* Bytes of one pixel in one plane of the NC1HWC2 layout. */
static uint32_t atom(void) {
    uint32_t bytes = settings()->rk3588 ? 16 : 8;
    return broken(WRONG_ATOM) ? bytes / 2 : bytes;
}

uint32_t planes(const struct cube *cube) {
    return (cube->bytes + cube->lanes - 1) / cube->lanes;
}

uint64_t address(const struct cube *cube, uint32_t y, uint32_t plane) {
    return cube->dma + (uint64_t)((int64_t)y * cube->line + (int64_t)plane * cube->plane);
}

/* Bytes of an element, by the code for precision in several registers. */
uint32_t element_bytes(uint32_t precision) {
    static const uint32_t bytes[8] = {1, 2, 2, 2, 4, 4, 1, 1};
    return bytes[precision];
}

/* ---- where a step reads from, and where it writes to ---- */

struct cube convolution_source(const struct registers *r) {
    uint32_t image = field(r, 0x100c, 12, 4); /* ARGB_IN: 8 and more are NHWC images of 1 and more channels */
    uint32_t size = element_bytes(field(r, 0x100c, 4, 3));
    struct cube cube = {
        .dma = value(r, 0x1070),
        .width = field(r, 0x1020, 16, 11),
        .height = field(r, 0x1020, 0, 11),
        .bytes = (field(r, 0x1024, 16, 14) + 1) * size,
        .lanes = atom(),
    };
    uint32_t line = field(r, 0x107c, 0, 28), plane = field(r, 0x1080, 0, 28);
    if (image >= 8)
        cube.lanes = (image - 7) * size;
    if (!settings()->rk3588) {
        cube.line = 8 * (int64_t)line, cube.plane = 8 * (int64_t)plane;
    } else if (field(r, 0x100c, 29, 1)) { /* GROUP_LINE_OFF: in pixels */
        cube.line = (int64_t)line * cube.lanes;
    } else {
        cube.line = 4 * (int64_t)line, cube.plane = 16 * ((int64_t)line + plane);
    }
    return cube;
}

/* The DPU's own source. After a line and after a plane it leaves something out (notch), in atoms and in bytes. */
struct cube element_source(const struct registers *r) {
    uint32_t size = element_bytes(field(r, 0x5044, 15, 3));
    uint32_t channels = field(r, 0x5014, 0, 13) + 1, real = field(r, 0x403c, 16, 13) + 1;
    struct cube cube = {
        .dma = value(r, 0x5018),
        .width = field(r, 0x500c, 0, 13) + 1,
        .height = field(r, 0x5010, 0, 13) + 1,
        .bytes = (real < channels ? real : channels) * size,
        .lanes = atom(),
    };
    int64_t notch = (int64_t)field(r, 0x5048, 19, 13) * cube.lanes;
    cube.line = (int64_t)cube.width * cube.lanes + notch;
    cube.plane = cube.line * cube.height - notch + (int32_t)value(r, 0x504c);
    return cube;
}

/* The second operand of an element-wise step, of the size of the result. */
struct cube second_source(const struct registers *r, const struct cube *result) {
    struct cube cube = *result;
    cube.dma = value(r, 0x5038);
    cube.line = (int64_t)(cube.width + field(r, 0x5010, 16, 13)) * cube.lanes;
    cube.plane = value(r, 0x5040);
    return cube;
}

struct cube pooling_source(const struct registers *r) {
    return (struct cube){
        .dma = value(r, 0x701c),
        .width = field(r, 0x700c, 0, 13) + 1,
        .height = field(r, 0x7010, 0, 13) + 1,
        .bytes = (field(r, 0x7014, 0, 13) + 1) * element_bytes(field(r, 0x6084, 0, 3)),
        .lanes = atom(),
        .line = value(r, 0x7024),
        .plane = value(r, 0x7028),
    };
}

struct cube dpu_result(const struct registers *r) {
    uint32_t size = element_bytes(field(r, 0x4010, 29, 3));
    struct cube cube = {
        .dma = value(r, 0x4020),
        .width = field(r, 0x4030, 0, 13) + 1,
        .height = field(r, 0x4034, 0, 13) + 1,
        .bytes = (field(r, 0x403c, 0, 13) + 1) * size,
        .lanes = size == 4 ? 16 : atom(), /* four channels of 32 bits on every chip */
        .plane = value(r, 0x4024),
    };
    cube.line = (int64_t)(cube.width + field(r, 0x4038, 0, 13)) * cube.lanes;
    return cube;
}

struct cube ppu_result(const struct registers *r) {
    struct cube cube = {
        .dma = value(r, 0x6070),
        .width = field(r, 0x6018, 0, 13) + 1,
        .height = field(r, 0x601c, 0, 13) + 1,
        .bytes = (field(r, 0x6020, 0, 13) + 1) * element_bytes(field(r, 0x6084, 0, 3)),
        .lanes = atom(),
        .plane = value(r, 0x607c),
    };
    cube.line = (int64_t)(cube.width + field(r, 0x6024, 16, 13)) * cube.lanes;
    return cube;
}
