// Records the effects of one run, as the receiving systems carry them out.
import { argumentsText } from './call-text.ts'
import type { EffectOptions, RunningStep } from './effect.ts'

/** An effect that a receiving system has carried out. */
export interface CarriedOut {
  /** The effect as text, such as `mailer.send("ann@example.com")`. Two effects with the same text are the same effect. */
  readonly effect: string
  /** By what the receiving system recognises a repeated call. Undefined if it carries out every call. */
  readonly recognisedBy?: string | undefined
  readonly idempotencyKey?: string | undefined
  /** Set if the effect may be repeated until the result of this step is stored. */
  readonly repeatableUntil?: RunningStep | undefined
}

/** How often a run has carried out an effect. */
export interface EffectCount {
  readonly total: number
  /** How many of these happened in a step whose result was never stored, and whose repetition is accepted. */
  readonly unrecorded: number
}

export interface EffectLedger {
  /** Adds an effect, unless the receiving system recognises the call as a repeated one. */
  add(effect: CarriedOut): void
  /** Removes the effect with this idempotency key. */
  undo(idempotencyKey: string): void
  counts(): ReadonlyMap<string, EffectCount>
}

export function createEffectLedger(): EffectLedger {
  let entries: readonly CarriedOut[] = []
  return {
    add(entry) {
      const isRepeated =
        entry.recognisedBy !== undefined && entries.some(({ recognisedBy }) => recognisedBy === entry.recognisedBy)
      if (!isRepeated) entries = [...entries, entry]
    },
    undo(idempotencyKey) {
      entries = entries.filter((entry) => entry.idempotencyKey !== idempotencyKey)
    },
    counts() {
      const counts = new Map<string, EffectCount>()
      for (const { effect, repeatableUntil } of entries) {
        const { total, unrecorded } = counts.get(effect) ?? { total: 0, unrecorded: 0 }
        const isUnrecorded = repeatableUntil?.isRecorded === false
        counts.set(effect, { total: total + 1, unrecorded: unrecorded + (isUnrecorded ? 1 : 0) })
      }
      return counts
    },
  }
}

/** Enters a call in the ledger. The call has been made and has succeeded. */
export function enterCall(
  ledger: EffectLedger,
  name: string,
  args: readonly unknown[],
  options: EffectOptions,
  step: RunningStep | undefined,
): void {
  const { deduplicatedBy = 'nothing', identity, undoes, unrecordedRepeat } = options
  if (undoes !== undefined) {
    ledger.undo(undoes(...args))
    return
  }
  const idempotencyKey = typeof deduplicatedBy === 'function' ? deduplicatedBy(...args) : undefined
  const described = identity === undefined ? args : [identity(...args)]
  const effect = `${name}(${argumentsText(described, idempotencyKey)})`
  ledger.add({
    effect,
    recognisedBy: deduplicatedBy === 'arguments' ? effect : idempotencyKey && `${name} ${idempotencyKey}`,
    idempotencyKey,
    repeatableUntil: unrecordedRepeat === 'accepted' ? step : undefined,
  })
}
