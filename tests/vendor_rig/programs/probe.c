/* The thin path through the vendor's runtime: one model, some runs, no Python. For tests of the rig itself.
 *
 *   probe LIBRARY MODEL WAY CORE_MASK INTERNAL_SIZE INPUT...
 *
 * WAY is "copying" (rknn_inputs_set with bytes passed through, rknn_outputs_get), "zero-copy" (native memories), or "outside"
 * (zero copy, internal memory of INTERNAL_SIZE bytes from outside; 0: of the size that the runtime names). CORE_MASK 0 leaves
 * the mask alone. INPUT are files with native bytes of input 0, each of which makes one run. Prints one line for each call,
 * "name code", and for each run "output HEX". Structures as in layout-aarch64 of the C API. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t index, n_dims, dims[16];
    char name[256];
    uint32_t n_elems, size, fmt, type, qnt_type;
    int8_t fl;
    int32_t zp;
    float scale;
    uint32_t w_stride, size_with_stride;
    uint8_t pass_through;
    uint32_t h_stride;
} Attribute;

typedef struct {
    uint32_t index;
    void *data;
    uint32_t size;
    uint8_t pass_through;
    uint32_t type, fmt;
} Input;

typedef struct {
    uint8_t want_float, is_prealloc;
    uint32_t index;
    void *data;
    uint32_t size;
} Output;

typedef struct {
    void *address;
    uint64_t physical;
    int32_t fd, offset;
    uint32_t size, flags;
    void *own;
} Memory;

typedef struct {
    uint32_t weights, internal;
    uint64_t dma;
    uint32_t sram, free_sram, reserved[10];
} Sizes;

enum { NATIVE_INPUT = 8, NATIVE_OUTPUT = 9, MEM_SIZE = 6, INTERNAL_ALLOC_OUTSIDE = 0x200 };

static void *library;
static uint64_t context;

/* A function of the library, of the type of what it is assigned to. */
#define CALL(name, type) ((type)symbol(name))

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        printf("missing %s\n", name);
        exit(2);
    }
    return found;
}

static int told(const char *name, int code) {
    printf("%s %d\n", name, code);
    fflush(stdout);
    return code;
}

static void hex(const char *name, const uint8_t *data, size_t size) {
    printf("%s ", name);
    for (size_t at = 0; at < size; at++)
        printf("%02x", data[at]);
    printf("\n");
    fflush(stdout);
}

static void read_input(const char *path, void *to, size_t size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fread(to, 1, size, file) != size) {
        printf("unreadable %s\n", path);
        exit(2);
    }
    fclose(file);
}

static Attribute attribute(int query) {
    Attribute it;
    memset(&it, 0, sizeof it);
    CALL("rknn_query", int (*)(uint64_t, int, void *, uint32_t))(context, query, &it, sizeof it);
    return it;
}

static void copying(Attribute in, int count, char **inputs) {
    uint8_t *data = malloc(in.size_with_stride);
    for (int number = 0; number < count; number++) {
        read_input(inputs[number], data, in.size_with_stride);
        Input input = {0, data, in.size_with_stride, 1, in.type, in.fmt};
        Output output = {0};
        told("inputs_set", CALL("rknn_inputs_set", int (*)(uint64_t, uint32_t, Input *))(context, 1, &input));
        told("run", CALL("rknn_run", int (*)(uint64_t, void *))(context, NULL));
        if (told("outputs_get", CALL("rknn_outputs_get", int (*)(uint64_t, uint32_t, Output *, void *))(context, 1, &output, NULL)) == 0)
            hex("output", output.data, output.size);
        CALL("rknn_outputs_release", int (*)(uint64_t, uint32_t, Output *))(context, 1, &output);
    }
    free(data);
}

static Memory *create(uint32_t size) {
    Memory *memory = CALL("rknn_create_mem", Memory *(*)(uint64_t, uint32_t))(context, size);
    if (memory == NULL) {
        printf("create_mem NULL\n");
        exit(3);
    }
    return memory;
}

static void internal_from_outside(uint32_t size) {
    Sizes sizes = {0};
    told("mem_size", CALL("rknn_query", int (*)(uint64_t, int, void *, uint32_t))(context, MEM_SIZE, &sizes, sizeof sizes));
    printf("internal %u\n", sizes.internal);
    Memory *memory = create(size > 0 ? size : sizes.internal);
    told("set_internal_mem", CALL("rknn_set_internal_mem", int (*)(uint64_t, Memory *))(context, memory));
}

static void zero_copy(Attribute in, Attribute out, int count, char **inputs) {
    Memory *input = create(in.size_with_stride), *output = create(out.size_with_stride);
    in.pass_through = 1;
    int (*bind)(uint64_t, Memory *, Attribute *) = CALL("rknn_set_io_mem", int (*)(uint64_t, Memory *, Attribute *));
    told("set_io_mem", bind(context, input, &in));
    told("set_io_mem", bind(context, output, &out));
    for (int number = 0; number < count; number++) {
        read_input(inputs[number], input->address, in.size_with_stride);
        if (told("run", CALL("rknn_run", int (*)(uint64_t, void *))(context, NULL)) == 0)
            hex("output", output->address, out.size_with_stride);
    }
    told("destroy_mem", CALL("rknn_destroy_mem", int (*)(uint64_t, Memory *))(context, input));
    told("destroy_mem", CALL("rknn_destroy_mem", int (*)(uint64_t, Memory *))(context, output));
}

int main(int count, char **arguments) {
    if (count < 6)
        return 2;
    const char *way = arguments[3];
    int mask = atoi(arguments[4]);
    library = dlopen(arguments[1], RTLD_NOW);
    if (library == NULL) {
        printf("dlopen %s\n", dlerror());
        return 2;
    }
    uint32_t flags = strcmp(way, "outside") == 0 ? INTERNAL_ALLOC_OUTSIDE : 0;
    if (told("init", CALL("rknn_init", int (*)(uint64_t *, void *, uint32_t, uint32_t, void *))(&context, arguments[2], 0, flags, NULL)))
        return 1;
    if (mask != 0)
        told("set_core_mask", CALL("rknn_set_core_mask", int (*)(uint64_t, int))(context, mask));
    Attribute in = attribute(NATIVE_INPUT), out = attribute(NATIVE_OUTPUT);
    printf("sizes %u %u\n", in.size_with_stride, out.size_with_stride);
    if (flags != 0)
        internal_from_outside((uint32_t)atoi(arguments[5]));
    if (strcmp(way, "copying") == 0)
        copying(in, count - 6, arguments + 6);
    else
        zero_copy(in, out, count - 6, arguments + 6);
    told("destroy", CALL("rknn_destroy", int (*)(uint64_t))(context));
    return 0;
}
