/* What comes out of a step. Each row of the destination becomes a hash of the source's rows that it is computed from (the
 * receptive field), with weights and bias in the key. Nothing of addresses, heights or cores goes in: the same tensor
 * comes out however the library cuts it into tasks, and on whatever cores. Channels that only pad are left out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stand_in.h"

enum { CNA = 1 << 0, DPU = 1 << 3, DPU_RDMA = 1 << 4, PPU = 1 << 5, PPU_RDMA = 1 << 6 };
enum { DEPTHWISE = 3, CONVERT_NOTHING_SCALE = 0x4000, CONVERT_NOTHING_SHIFT = 14 };

/* ---- rows ---- */

static const uint8_t *row(const struct cube *cube, uint32_t y, uint32_t plane, uint64_t *fault_at) {
    *fault_at = address(cube, y, plane);
    return device_read(*fault_at, (uint64_t)cube->width * cube->lanes);
}

/* A hash of each row of the source, for the caller to free; NULL: something lies outside every buffer. */
static uint64_t *row_hashes(const struct cube *cube, uint64_t *fault_at) {
    uint64_t *hashes = calloc(cube->height + 1, sizeof *hashes);
    for (uint32_t y = 0; y < cube->height; y++) {
        struct hash hash;
        hash_begin(&hash, 1);
        for (uint32_t plane = 0; plane < planes(cube); plane++) {
            const uint8_t *data = row(cube, y, plane, fault_at);
            if (data == NULL) {
                free(hashes);
                return NULL;
            }
            uint32_t left = cube->bytes - plane * cube->lanes;
            if (left >= cube->lanes)
                hash_bytes(&hash, data, (size_t)cube->width * cube->lanes);
            else
                for (uint32_t x = 0; x < cube->width; x++)
                    hash_bytes(&hash, data + (size_t)x * cube->lanes, left);
        }
        hashes[y] = hash.state;
    }
    return hashes;
}

/* Rows y with y = first + step * k, k < count, into the hash; those outside the source are padding. */
static void add_field(struct hash *hash, const uint64_t *rows, uint32_t height, int64_t first, uint32_t step,
                      uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        int64_t y = first + (int64_t)step * k;
        hash_number(hash, y >= 0 && y < (int64_t)height ? rows[y] : 0x7ad);
    }
}

/* What distinguishes the planes of a result: a key for each group of `planes` of them. One group: for all. */
struct keys {
    uint64_t *key;
    uint32_t count, planes;
};

static int write_row(const struct cube *result, uint32_t y, const struct hash *hash, const struct keys *keys,
                     uint64_t *fault_at) {
    uint8_t data[8192 * 16];
    size_t size = (size_t)result->width * result->lanes;
    for (uint32_t plane = 0; plane < planes(result); plane++) {
        uint32_t group = plane / keys->planes;
        struct hash own = *hash;
        hash_number(&own, keys->key[group < keys->count ? group : keys->count - 1]);
        hash_spread(&own, plane % keys->planes, data, size);
        *fault_at = address(result, y, plane) + (broken(SHIFTED_DESTINATION) ? LINE : 0);
        if (!device_write(*fault_at, data, size))
            return -EFAULT;
    }
    return 0;
}

/* The hash of a row's inputs; `kind` tells steps apart that read the same. */
static struct hash begin_row(const struct registers *r, const struct cube *result, uint64_t kind) {
    struct hash hash;
    hash_begin(&hash, kind);
    hash_number(&hash, result->width);
    if (fault("core-computes-wrong") && fault_number("core-computes-wrong", "core", 0) == (uint64_t)r->core)
        hash_number(&hash, 0xbad);
    return hash;
}

static const struct keys *no_keys(void) {
    static uint64_t zero;
    static const struct keys keys = {&zero, 1, UINT32_MAX};
    return &keys;
}

/* ---- convolution ---- */

/* Channels whose weights lie together, and the bytes of their bias and scale. */
static uint32_t kernel_group(void) {
    return settings()->rk3588 ? 32 : 16;
}

enum { BIAS_BYTES = 4, OPERAND_BYTES = 10 };

static int add_operands(struct hash *hash, const struct registers *r, uint32_t group, uint64_t *fault_at) {
    uint32_t used = field(r, 0x501c, 1, 4);
    *fault_at = value(r, 0x5020) + (uint64_t)group * kernel_group() * OPERAND_BYTES;
    if (used == 0 || value(r, 0x5020) == 0)
        return 0;
    const uint8_t *bias = device_read(*fault_at, (uint64_t)kernel_group() * BIAS_BYTES);
    if (bias == NULL)
        return -EFAULT;
    hash_bytes(hash, bias, (size_t)kernel_group() * BIAS_BYTES);
    return 0;
}

/* A key from weights and bias for each group of kernels; `keys->key` is the caller's to free. */
static int weight_keys(struct keys *keys, const struct registers *r, uint32_t enabled, uint64_t *fault_at) {
    uint32_t all = value(r, 0x1030), each = field(r, 0x1034, 0, 19), kernels = field(r, 0x1038, 0, 14);
    bool depthwise = field(r, 0x100c, 0, 4) == DEPTHWISE;
    uint32_t part = depthwise ? all : each * kernel_group();
    keys->count = depthwise || kernels <= kernel_group() ? 1 : (kernels + kernel_group() - 1) / kernel_group();
    keys->planes = kernel_group() * element_bytes(field(r, 0x4010, 29, 3)) / (settings()->rk3588 ? 16 : 8);
    keys->key = calloc(keys->count, sizeof *keys->key);
    for (uint32_t group = 0; group < keys->count; group++) {
        uint64_t offset = (uint64_t)group * part, size = group + 1 < keys->count ? part : all - offset;
        *fault_at = value(r, 0x1110) + offset;
        const uint8_t *weights = device_read(*fault_at, size);
        struct hash hash;
        hash_begin(&hash, 2);
        if (weights == NULL)
            return -EFAULT;
        hash_bytes(&hash, weights, size);
        if ((enabled & DPU_RDMA) != 0 && add_operands(&hash, r, group, fault_at) != 0)
            return -EFAULT;
        keys->key[group] = hash.state;
    }
    return 0;
}

static bool has_second_source(const struct registers *r, uint32_t enabled) {
    return (enabled & DPU_RDMA) != 0 && field(r, 0x5034, 0, 1) == 0 && field(r, 0x4070, 0, 1) == 0 &&
           value(r, 0x5038) != 0;
}

/* Row hashes of the second operand where there is one, else `*rows` is NULL. */
static int second_rows(uint64_t **rows, const struct registers *r, uint32_t enabled, const struct cube *result,
                       uint64_t *fault_at) {
    *rows = NULL;
    if (!has_second_source(r, enabled))
        return 0;
    struct cube second = second_source(r, result);
    *rows = row_hashes(&second, fault_at);
    return *rows == NULL ? -EFAULT : 0;
}

static int convolve(const struct registers *r, uint32_t enabled, uint64_t *fault_at) {
    struct cube source = convolution_source(r), result = (enabled & PPU) != 0 ? ppu_result(r) : dpu_result(r);
    uint32_t kernel = field(r, 0x1038, 16, 5), step = field(r, 0x1014, 3, 3), dilation = field(r, 0x1014, 21, 5) + 1;
    int64_t first = -(int64_t)field(r, 0x1068, 0, 4);
    bool whole = field(r, 0x100c, 16, 1) != 0; /* a deconvolution: each row from all of the source */
    struct keys keys = {0};
    uint64_t *rows = NULL, *second = NULL;
    int status = -EFAULT;
    if (weight_keys(&keys, r, enabled, fault_at) != 0 || (rows = row_hashes(&source, fault_at)) == NULL ||
        second_rows(&second, r, enabled, &result, fault_at) != 0)
        goto done;
    status = 0;
    for (uint32_t y = 0; y < result.height && status == 0; y++) {
        struct hash hash = begin_row(r, &result, 3);
        if (whole) {
            hash_number(&hash, y);
            add_field(&hash, rows, source.height, 0, 1, source.height);
        } else {
            add_field(&hash, rows, source.height, first + (int64_t)y * step, dilation, kernel);
        }
        if (second != NULL)
            hash_number(&hash, second[y]);
        status = write_row(&result, y, &hash, &keys, fault_at);
    }
done:
    free(keys.key), free(rows), free(second);
    return status;
}

/* ---- a convolution that computes nothing: how RK3566 brings a result into the order NCHW ----
 *
 * One kernel for each byte of the result, each with a single weight, 1, no bias, and a scale of 1: the bytes only move.
 * Weights lie in groups of 16 kernels; in a group by pixel, then kernel, then channel. */

enum { MOVE_GROUP = 16, MOVE_CHANNELS = 8, MOVE_KERNELS = 512 };

/* For each kernel the place of its weight, pixel * MOVE_CHANNELS + channel; false: something else than single ones. */
static bool single_weights(const uint8_t *weights, uint32_t kernels, uint32_t pixels, uint16_t *place) {
    uint32_t found = 0;
    for (uint32_t at = 0; at < kernels * pixels * MOVE_CHANNELS; at++) {
        if (weights[at] == 0)
            continue;
        uint32_t channel = at % MOVE_CHANNELS, kernel = at / MOVE_CHANNELS % MOVE_GROUP;
        uint32_t pixel = at / (MOVE_CHANNELS * MOVE_GROUP) % pixels;
        uint32_t group = at / (MOVE_CHANNELS * MOVE_GROUP * pixels);
        if (weights[at] != 1)
            return false;
        place[group * MOVE_GROUP + kernel] = (uint16_t)(pixel * MOVE_CHANNELS + channel);
        found++;
    }
    return found == kernels;
}

static bool only_moves(const struct registers *r, uint32_t enabled, uint16_t *place) {
    uint32_t kernels = field(r, 0x1038, 0, 14), pixels = field(r, 0x1038, 24, 5);
    if (settings()->rk3588 || (enabled & DPU_RDMA) != 0 || field(r, 0x1038, 16, 5) != 1 || kernels > MOVE_KERNELS ||
        field(r, 0x1020, 16, 11) != pixels ||
        kernels % MOVE_GROUP != 0 || field(r, 0x1024, 0, 16) != MOVE_CHANNELS || field(r, 0x4010, 29, 3) != 0 ||
        value(r, 0x4084) != CONVERT_NOTHING_SCALE || value(r, 0x4088) != CONVERT_NOTHING_SHIFT)
        return false;
    const uint8_t *weights = device_read(value(r, 0x1110), value(r, 0x1030));
    return weights != NULL && value(r, 0x1030) == kernels * pixels * MOVE_CHANNELS &&
           single_weights(weights, kernels, pixels, place);
}

static int move(const struct registers *r, const uint16_t *place, uint64_t *fault_at) {
    /* A row of the source is as wide as the kernel, so that each gives one pixel, wherever that lies. */
    struct cube source = convolution_source(r), result = dpu_result(r);
    for (uint32_t y = 0; y < source.height; y++) {
        const uint8_t *from = row(&source, y, 0, fault_at);
        if (from == NULL)
            return -EFAULT;
        for (uint32_t plane = 0; plane < planes(&result); plane++) {
            uint8_t pixel[16];
            for (uint32_t lane = 0; lane < result.lanes; lane++)
                pixel[lane] = from[place[plane * result.lanes + lane]];
            *fault_at = address(&result, y / result.width, plane) + (uint64_t)(y % result.width) * result.lanes;
            if (!device_write(*fault_at, pixel, result.lanes))
                return -EFAULT;
        }
    }
    return 0;
}

/* ---- element-wise steps and pooling ---- */

/* Zeroing what pads the rows of an image, in the memory that the CPU wrote: a second run must find the same there. */
static bool only_masks_input(const struct cube *source, const struct cube *result) {
    return source->dma == result->dma && !device_wrote(source->dma);
}

static int elementwise(const struct registers *r, uint32_t enabled, uint64_t *fault_at) {
    struct cube source = element_source(r), result = (enabled & PPU) != 0 ? ppu_result(r) : dpu_result(r);
    if (only_masks_input(&source, &result))
        return 0;
    bool whole = source.height != result.height; /* turned round: each row from all of the source */
    uint64_t *rows = row_hashes(&source, fault_at), *second = NULL;
    int status = rows == NULL ? -EFAULT : second_rows(&second, r, enabled, &result, fault_at);
    for (uint32_t y = 0; y < result.height && status == 0; y++) {
        struct hash hash = begin_row(r, &result, 4);
        if (whole) {
            hash_number(&hash, y);
            add_field(&hash, rows, source.height, 0, 1, source.height);
        } else {
            hash_number(&hash, rows[y]);
        }
        if (second != NULL)
            hash_number(&hash, second[y]);
        status = write_row(&result, y, &hash, no_keys(), fault_at);
    }
    free(rows), free(second);
    return status;
}

/* A window of one pixel leaves each as it is: so the cores of a job wait for each other. */
static int copy_rows(const struct cube *source, const struct cube *result, uint64_t *fault_at) {
    for (uint32_t plane = 0; plane < planes(result); plane++)
        for (uint32_t y = 0; y < result->height; y++) {
            const uint8_t *from = row(source, y, plane, fault_at);
            if (from == NULL)
                return -EFAULT;
            *fault_at = address(result, y, plane);
            if (!device_write(*fault_at, from, (uint64_t)result->width * result->lanes))
                return -EFAULT;
        }
    return 0;
}

static int pool(const struct registers *r, uint64_t *fault_at) {
    struct cube source = pooling_source(r), result = ppu_result(r);
    uint32_t kernel = field(r, 0x6034, 8, 4) + 1, step = field(r, 0x6034, 20, 4) + 1;
    if (value(r, 0x6034) == 0 && source.width == result.width && source.height == result.height)
        return copy_rows(&source, &result, fault_at);
    int64_t first = -(int64_t)field(r, 0x6040, 4, 3);
    uint64_t *rows = row_hashes(&source, fault_at);
    int status = rows == NULL ? -EFAULT : 0;
    for (uint32_t y = 0; y < result.height && status == 0; y++) {
        struct hash hash = begin_row(r, &result, 5);
        add_field(&hash, rows, source.height, first + (int64_t)y * step, 1, kernel);
        status = write_row(&result, y, &hash, no_keys(), fault_at);
    }
    free(rows);
    return status;
}

int run_step(const struct registers *registers, uint32_t enabled, uint64_t *fault_at) {
    uint16_t place[MOVE_KERNELS];
    if ((enabled & CNA) != 0)
        return only_moves(registers, enabled, place) ? move(registers, place, fault_at)
                                                     : convolve(registers, enabled, fault_at);
    if ((enabled & DPU_RDMA) != 0)
        return elementwise(registers, enabled, fault_at);
    if ((enabled & PPU_RDMA) != 0)
        return pool(registers, fault_at);
    return 0;
}
