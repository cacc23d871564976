// Defines unique keys. If several tasks of one definition specify the same key, at most one of them has the key at a time.
import { z } from 'zod'
import { nameText } from '../../definition/texts.ts'
import { type Duration, milliseconds } from '../../definition/units/duration.ts'

/** Events that release a unique key. */
export const KEY_RELEASES = ['started', 'finished'] as const

/** What happens if another task has the unique key. */
export const ON_CONFLICT = ['keep', 'replace', 'extend', 'error'] as const

export type OnConflict = (typeof ON_CONFLICT)[number]

export interface UniqueOptions {
  /** 1 to 128 characters. Keys belong to a task definition: a task of another definition may have the same key. */
  readonly key: string
  /**
   * How long the task has the key: until its first attempt starts, until the task ends, or for a fixed time after it was enqueued,
   * whatever happens to the task. Defaults to 'finished'.
   */
  readonly until?: (typeof KEY_RELEASES)[number] | Duration
  /**
   * What happens if another task has the key. That task's own `until` determines whether it still has the key.
   *
   * - `keep`, the default: nothing is stored. The response has the other task's id and the action `existing`.
   * - `replace`: if the other task has not started, it is deleted, and the new task is stored. Otherwise, `keep` applies.
   * - `extend`: if the other task is scheduled and has not started, its start is postponed to that of the new task, which is not
   *   stored. Otherwise, `keep` applies. Requires `delay` or `runAt`.
   * - `error`: nothing is stored, and the call fails with `unique_key_taken`.
   */
  readonly onConflict?: OnConflict
}

const UNTIL_RULE = "expected 'started', 'finished', or a duration from '1ms' to '365d', such as '10m'"

export const uniqueSchema = z.strictObject({
  key: nameText(128).describe(
    '1 to 128 characters. Keys belong to a task definition: a task of another definition may have the same key.',
  ),
  until: z
    .union([z.enum(KEY_RELEASES), z.string().refine(isDuration, UNTIL_RULE)], { error: UNTIL_RULE })
    .optional()
    .describe(
      "How long the task has the key: until its first attempt starts (`started`), until the task ends (`finished`, the default), or for a fixed time after it was enqueued, such as '10m', whatever happens to the task.",
    ),
  onConflict: z
    .enum(ON_CONFLICT)
    .optional()
    .describe(
      'What happens if another task has the key. `keep`, the default: nothing is stored, and the response has the id of the other task. `replace`: if the other task has not started, it is deleted, and the new task is stored; otherwise, `keep` applies. `extend`: if the other task is scheduled and has not started, its start is postponed to that of the new task, which is not stored; otherwise, `keep` applies. `error`: the API responds with the problem `unique_key_taken`.',
    ),
})

function isDuration(text: string): boolean {
  try {
    return milliseconds(text) > 0
  } catch {
    return false
  }
}
