// Takes tokens of an API key's rates in queues on Redis, for tasks that no script charges when it adds them.
import type { Broker, GiveBack, QueueTokens } from '@bullpen/engine'
import { type LimitedTokens, limitedTokens, rateExceeded } from '@bullpen/engine/internal'
import type { Admission } from '../admission/admission.ts'
import type { QueueTable } from '../broker/queue-handles.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { takeTokensScript } from '../store/scripts.ts'

export interface QueueTokensOptions {
  readonly redis: Commander
  readonly queues: Pick<QueueTable, 'of'>
  readonly admission: Pick<Admission, 'ensureKnown' | 'limitsOf'>
  /** Runs a command once the namespace is known to be compatible, and limits how long the caller waits for the reply. */
  readonly call: <T>(run: () => Promise<T>) => Promise<T>
}

export function createQueueTokens({
  redis,
  queues,
  admission,
  call,
}: QueueTokensOptions): Pick<Broker, 'takeInQueues'> {
  /** Takes tokens, or gives them back if `wanted` is negative. Returns 0, or in how many ms there are enough. */
  function change(apiKeyName: string, { queue, rate }: LimitedTokens, wanted: number): Promise<number> {
    const { apiKeyRates } = queues.of(queue).keys
    const args = { apiKeyName, max: rate.max, per: rate.perMs, wanted }
    return call(() => runScript(redis, takeTokensScript, { apiKeyRates }, args))
  }

  async function take(apiKeyName: string, limited: readonly LimitedTokens[]): Promise<GiveBack> {
    const taken: LimitedTokens[] = []
    const giveBack: GiveBack = async (tokens) => {
      const unused = taken.flatMap((each) => {
        const count = tokens.get(each.queue) ?? 0
        return count === 0 ? [] : [change(apiKeyName, each, -count)]
      })
      await Promise.allSettled(unused)
    }
    try {
      // One after another, because two requests that took them from both ends would refuse each other.
      for (const each of limited) {
        const { queue, rate, tokens } = each
        const retryAfterMs = await change(apiKeyName, each, tokens)
        if (retryAfterMs > 0) throw rateExceeded({ apiKeyName, queue, rate, wanted: tokens, retryAfterMs })
        taken.push(each)
      }
    } catch (error) {
      await giveBack(new Map(taken.map(({ queue, tokens }) => [queue, tokens])))
      throw error
    }
    return giveBack
  }

  function takeNow(apiKeyName: string, wanted: readonly QueueTokens[]): Promise<GiveBack> | undefined {
    const current = wanted.map((each) => ({
      ...each,
      limits: admission.limitsOf(each.queue, each.limits, apiKeyName),
    }))
    const limited = limitedTokens(apiKeyName, current)
    return limited.length === 0 ? undefined : take(apiKeyName, limited)
  }

  return {
    takeInQueues(apiKeyName, wanted) {
      const reading = admission.ensureKnown(wanted.map(({ queue }) => queue))
      return reading === undefined
        ? takeNow(apiKeyName, wanted)
        : call(() => reading).then(() => takeNow(apiKeyName, wanted))
    },
  }
}
