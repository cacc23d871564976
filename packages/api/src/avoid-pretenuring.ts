// Sets a flag of V8 without which the API's throughput and response times depend on chance.
import { setFlagsFromString } from 'node:v8'

/** V8 ignores flags that it does not know. */
export const NO_PRETENURING = '--no-allocation-site-pretenuring'

/**
 * Keeps V8 from allocating objects directly in the old generation, in the whole process.
 *
 * V8 allocates the objects of a call site in this way if most of the site's earlier objects have survived their first garbage
 * collection. With many requests at once, this may happen to objects that every request needs, such as those of `process.nextTick`.
 * Such an object stays until the next full collection, and keeps everything to which it refers, which each small collection then
 * copies. In more than half of the processes, this took a third more processor time per request, and the 99th percentile of the
 * response times was three times as high.
 */
export function avoidPretenuring(): void {
  setFlagsFromString(NO_PRETENURING)
}
