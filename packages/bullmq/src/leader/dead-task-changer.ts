// Carries out a queue's requests to retry or delete dead tasks by filter, page by page.
//
// A request is stored in Redis with its position, so that any leader continues where the previous one has stopped. The leader starts
// when its survey of the queue finds a request, and takes turns if there are several.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Term } from '../cancel/bulk-canceller.ts'
import type { QueueKeys } from '../keys.ts'
import { KEEP_PROGRESS_MS, parseDeadRequest, rangeOf, searchedSet } from '../queries/dead-tasks.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { changeDeadPageScript } from '../store/scripts.ts'

/** The longest pause while the rates permit no task, in ms, so that the leader soon notices a new request and the end of its term. */
const MAX_PAUSE_MS = 200

/** Works until no request is left or the term is over. Takes one round trip for each page, and one for each turn. */
export async function changeDeadTasks(redis: Commander, keys: QueueKeys, term: Term): Promise<void> {
  while (!term.isOver()) {
    const requests = (await redis.hvals(keys.deadRequests)).flatMap((text) => parseDeadRequest(text) ?? [])
    if (requests.length === 0) return
    const sentAt = performance.now()
    let waitMs = Number.POSITIVE_INFINITY
    for (const { id, action, by, rate, filter, at, afterCompensation } of requests) {
      const endedUntil = Math.min(filter.endedUntil ?? at, at)
      const names = { ...keys, progress: keys.deadProgress(id), set: searchedSet(keys, filter) }
      const range = rangeOf(keys, { ...filter, endedUntil })
      const flag = { afterCompensation: afterCompensation === true ? '1' : '' }
      const args = { fencing: term.fencing, id, action, by, rate, keepMs: KEEP_PROGRESS_MS, ...range, ...flag }
      const permittedInMs = await runScript(redis, changeDeadPageScript, names, args)
      if (permittedInMs === null || term.isOver()) return
      waitMs = Math.min(waitMs, permittedInMs)
    }
    if (waitMs > 0) await sleep(Math.min(waitMs, MAX_PAUSE_MS), undefined, { ref: false })
    else await pauseAfterPage(sentAt)
  }
}
