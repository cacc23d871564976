// Decides from the main thread's beats whether its event loop stands still, and when that is worth a line in the log.

/** How often the main thread beats, and how often the watch looks at the beats. */
export const BEAT_MS = 100

/** A block is told again whenever it has lasted so many times longer: 1 s, 2 s, 4 s; for ever is 17 lines a day. */
const TOLD_AGAIN_AFTER = 2

export interface Stillness {
  /** The newest beat that was seen. */
  readonly beat: number
  /** How long that has been the newest. */
  readonly stillMs: number
  /** How often this block was told. */
  readonly told: number
}

export interface Look {
  readonly beat: number
  /** Since the look before. */
  readonly elapsedMs: number
}

/** `tell`: say now that the loop is blocked. `over`: the loop turns again after a block that was told. */
export type Finding = 'nothing' | 'tell' | 'over'

export const STILLNESS_BEGINS: Stillness = { beat: 0, stillMs: 0, told: 0 }

export function observe(
  before: Stillness,
  { beat, elapsedMs }: Look,
  warnAfterMs: number,
): { readonly stillness: Stillness; readonly finding: Finding } {
  if (beat !== before.beat) {
    return { stillness: { beat, stillMs: 0, told: 0 }, finding: before.told === 0 ? 'nothing' : 'over' }
  }
  // A look that comes late shows that the whole process was held, as by SIGSTOP or a starved machine: not the loop's doing.
  const stillMs = before.stillMs + Math.min(elapsedMs, 2 * BEAT_MS)
  const due = stillMs >= warnAfterMs * TOLD_AGAIN_AFTER ** before.told
  return { stillness: { beat, stillMs, told: before.told + (due ? 1 : 0) }, finding: due ? 'tell' : 'nothing' }
}
