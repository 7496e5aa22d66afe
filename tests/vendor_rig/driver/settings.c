/* Environment variables, the trace, the kernel's log. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stand_in.h"

enum { RK3588_HARDWARE = 1179210309 };

static struct settings values;
static pthread_once_t read_once = PTHREAD_ONCE_INIT;

static const char *variable(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? text : "";
}

static uint64_t number(const char *name, uint64_t otherwise) {
    const char *text = variable(name);
    return *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

/* "0.9.8" as the driver counts it. */
static uint32_t version(const char *name, const char *otherwise) {
    const char *text = variable(name);
    unsigned major = 0, minor = 0, patch = 0;
    sscanf(*text != '\0' ? text : otherwise, "%u.%u.%u", &major, &minor, &patch);
    return major * 10000 + minor * 100 + patch;
}

static const char *const breakage_names[BREAKAGES] = {
    [NO_SHADOW] = "no-shadow",
    [NO_DIRTY_LINES] = "no-dirty-lines",
    [NO_FROM_DEVICE] = "no-from-device",
    [TASKS_REORDERED] = "tasks-reordered",
    [WRONG_ATOM] = "wrong-atom",
    [SHIFTED_DESTINATION] = "shifted-destination",
    [NO_BOUNDS] = "no-bounds",
};

static const char *entry(const char *list, const char *name, size_t *length);

static void read_settings(void) {
    values.rk3588 = strcmp(variable("RKNPU_STAND_IN_SOC"), "rk3566") != 0;
    values.hardware_version = (uint32_t)number("RKNPU_STAND_IN_HARDWARE", values.rk3588 ? RK3588_HARDWARE : 0);
    values.driver_version = version("RKNPU_STAND_IN_DRIVER", "0.9.8");
    values.iommu = (uint32_t)number("RKNPU_STAND_IN_IOMMU", 1);
    values.sram_bytes = (uint32_t)number("RKNPU_STAND_IN_SRAM", 0);
    values.key = number("RKNPU_STAND_IN_KEY", 0x5eed);
    values.dma_base = number("RKNPU_STAND_IN_DMA_BASE", 0x10000000);
    values.absent = fault("driver-absent");
    size_t length;
    for (int way = 0; way < BREAKAGES; way++)
        values.broken[way] = entry(variable("RKNPU_STAND_IN_BROKEN"), breakage_names[way], &length) != NULL;
}

const struct settings *settings(void) {
    pthread_once(&read_once, read_settings);
    return &values;
}

/* ---- faults: "name:key=value:key=value,name" ---- */

/* What follows `name` in a list, up to the next comma; NULL where the list does not have it. */
static const char *entry(const char *list, const char *name, size_t *length) {
    size_t name_length = strlen(name);
    while (*list != '\0') {
        size_t whole = strcspn(list, ",");
        if (whole >= name_length && strncmp(list, name, name_length) == 0 &&
            (whole == name_length || list[name_length] == ':')) {
            *length = whole - name_length;
            return list + name_length;
        }
        list += whole;
        list += *list == ',';
    }
    return NULL;
}

/* The text of `key` in an entry's parameters, not terminated; NULL where it is not there. */
static const char *parameter(const char *name, const char *key, size_t *length) {
    size_t left;
    const char *at = entry(variable("RKNPU_STAND_IN_FAULTS"), name, &left);
    size_t key_length = strlen(key);
    while (at != NULL && left > 0) {
        at++, left--; /* the colon */
        size_t whole = strcspn(at, ":,");
        if (whole > key_length && strncmp(at, key, key_length) == 0 && at[key_length] == '=') {
            *length = whole - key_length - 1;
            return at + key_length + 1;
        }
        at += whole, left -= whole;
    }
    return NULL;
}

bool fault(const char *name) {
    size_t length;
    return entry(variable("RKNPU_STAND_IN_FAULTS"), name, &length) != NULL;
}

uint64_t fault_number(const char *name, const char *key, uint64_t otherwise) {
    size_t length;
    const char *text = parameter(name, key, &length);
    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

bool fault_says(const char *name, const char *key, const char *value) {
    size_t length;
    const char *text = parameter(name, key, &length);
    return text == NULL || (length == strlen(value) && strncmp(text, value, length) == 0);
}

bool broken(enum breakage way) {
    return settings()->broken[way];
}

/* ---- files that are appended to, one write for each line ---- */

static void append(const char *path, const char *text, size_t length) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0) {
        if (write(fd, text, length) < 0) { /* a full disk costs the line, not the run */
        }
        close(fd);
    }
}

void trace(const char *format, ...) {
    const char *path = variable("RKNPU_STAND_IN_TRACE");
    if (*path == '\0')
        return;
    char line[1024];
    int used = snprintf(line, sizeof line, "{\"pid\": %d, ", getpid());
    va_list arguments;
    va_start(arguments, format);
    used += vsnprintf(line + used, sizeof line - (size_t)used - 3, format, arguments);
    va_end(arguments);
    if (used > (int)sizeof line - 4)
        used = (int)sizeof line - 4;
    memcpy(line + used, "}\n", 2);
    append(path, line, (size_t)used + 2);
}

void kernel_log(const char *format, ...) {
    const char *path = variable("RKNPU_STAND_IN_KERNEL_LOG");
    if (*path == '\0')
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    char line[512];
    /* As a reader of /dev/kmsg gets it: priority, sequence, microseconds, flags; then the message. */
    int used = snprintf(line, sizeof line, "3,1,%lld,-;RKNPU: ", now.tv_sec * 1000000LL + now.tv_nsec / 1000);
    va_list arguments;
    va_start(arguments, format);
    used += vsnprintf(line + used, sizeof line - (size_t)used - 2, format, arguments);
    va_end(arguments);
    if (used > (int)sizeof line - 3)
        used = (int)sizeof line - 3;
    line[used] = '\n';
    append(path, line, (size_t)used + 1);
}
