// Checks that no concurrency key has had more attempts at the same time than its limit allows.
import type { PerConcurrencyKey, TaskRecord } from '@bullpen/contract'
import { rule } from './history.ts'
import type { Time } from './run-program.ts'

interface Attempt {
  readonly id: string
  readonly startedAt: number
  readonly endedAt: number
}

/**
 * A task gives its place back after its attempt has ended, and another task takes the place before its attempt starts. The
 * attempt of a lost worker ends when its task is recovered, although its handler may still run.
 */
export function limitsHold(
  records: readonly TaskRecord[],
  limits: PerConcurrencyKey,
  { inexactMs }: Pick<Time, 'inexactMs'>,
): void {
  for (const [key, of] of Map.groupBy(records, ({ concurrencyKey }) => concurrencyKey)) {
    if (key === undefined) continue
    const limit = limits.keys[key]?.concurrency ?? limits.concurrency ?? Number.POSITIVE_INFINITY
    const attempts = of.flatMap(({ id, attempts }): Attempt[] =>
      attempts.flatMap(({ fencingToken, startedAt, endedAt }) =>
        fencingToken > 0 ? [{ id, startedAt, endedAt }] : [],
      ),
    )
    for (const { id, startedAt } of attempts) {
      const atOnce = attempts.filter((each) => each.startedAt <= startedAt && each.endedAt > startedAt + inexactMs)
      rule(
        atOnce.length <= limit,
        `when ${id} started, ${atOnce.length} tasks of the key '${key}' ran, whose limit is ${limit}`,
      )
    }
  }
}
