/* What the NPU does with a submitted job: which tasks each core executes, and the register words of each.
 *
 * The kernel reads the task records through its own mapping, which is coherent with the CPU; the words are fetched by the
 * device. Each block has two banks of registers that take turns, a bank for each task that enables the block: a task
 * need only write what differs from the last but one. */
#include <errno.h>
#include <string.h>

#include "stand_in.h"
#include "uapi.h"

enum { CORES = 3, BLOCKS = 8, BLOCK_BYTES = 0x1000 };

/* A block's bit in a task's enable mask, by the number in its registers' offsets (0x1000: CNA, ...); -1: it has none. */
static const int enable_bit[BLOCKS] = {-1, 0, 1, 2, 3, 4, 5, 6};

static struct {
    uint32_t value[2][BLOCKS][BLOCK_BYTES / 4];
    int bank[BLOCKS];
} cores[CORES];

static bool is_enabled(uint32_t mask, unsigned block) {
    return enable_bit[block] >= 0 && (mask >> enable_bit[block] & 1) != 0;
}

static int page_fault(uint64_t dma, const char *what) {
    kernel_log("rk_iommu fdab9000.iommu: Page fault at %#010llx of type %s", (unsigned long long)dma, what);
    kernel_log("failed to wait job, task counter: 0, flags: 0x5, ret = 0");
    kernel_log("soft reset, num: 1");
    return -ETIMEDOUT;
}

static int run_task(int core, const struct rknpu_task *task) {
    const uint8_t *words = device_read(task->words, 8ull * task->word_count);
    if (words == NULL)
        return page_fault(task->words, "read");
    for (unsigned block = 0; block < BLOCKS; block++)
        if (is_enabled(task->enable_mask, block))
            cores[core].bank[block] ^= 1;
    for (uint32_t index = 0; index < task->word_count; index++) {
        uint64_t word;
        memcpy(&word, words + 8ull * index, sizeof word);
        unsigned offset = word & 0xffff, block = offset / BLOCK_BYTES;
        if (block > 0 && block < BLOCKS)
            cores[core].value[cores[core].bank[block]][block][offset % BLOCK_BYTES / 4] = (uint32_t)(word >> 16);
    }
    struct registers registers;
    for (unsigned block = 0; block < BLOCKS; block++)
        registers.block[block] = cores[core].value[cores[core].bank[block]][block];
    registers.core = core;
    uint64_t fault_at = 0;
    int result = run_step(&registers, task->enable_mask, &fault_at);
    return result == -EFAULT ? page_fault(fault_at, "read or write") : result;
}

/* The tasks that a core is to execute. RK3566 has one core and another place for them. */
static struct rknpu_subcore_task share(const struct rknpu_submit *job, int core, int used) {
    if (!settings()->rk3588)
        return (struct rknpu_subcore_task){job->task_start, job->task_count};
    return job->subcore[used == CORES ? core + 2 : core];
}

static int run_core(const struct rknpu_submit *job, int core, int used, const struct buffer *tasks) {
    struct rknpu_subcore_task it = share(job, core, used);
    uint64_t room = tasks->size / sizeof(struct rknpu_task);
    if (it.count == 0)
        return 0;
    if (it.start >= room || it.count > room - it.start)
        return -EINVAL;
    uint32_t count = it.count - (fault("last-task-skipped") && it.count > 1);
    for (uint32_t index = 0; index < count; index++) {
        uint32_t place = broken(TASKS_REORDERED) ? count - 1 - index : index;
        struct rknpu_task task;
        memcpy(&task, tasks->cpu + (it.start + place) * sizeof task, sizeof task);
        int result = run_task(core, &task);
        if (result != 0)
            return result;
    }
    return 0;
}

int npu_run(struct rknpu_submit *job) {
    struct buffer *tasks = buffer_by_object(job->task_object);
    uint32_t mask = job->core_mask != 0 ? job->core_mask : 1; /* 0: whichever is free */
    uint32_t known = settings()->rk3588 ? 7 : 1;
    if (tasks == NULL || job->task_count == 0 || mask > known)
        return -EINVAL;
    int used = __builtin_popcount(mask);
    for (int core = 0; core < CORES; core++)
        if (mask >> core & 1) {
            int result = run_core(job, core, used, tasks);
            if (result != 0)
                return result;
        }
    job->task_counter = job->task_count;
    return 0;
}
