// Starts the receipts drill's workers, and restarts them while they deliver.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Program, Programs } from '../environment/shipped-programs.ts'
import type { Exit } from '../ledger/ledger.ts'
import { momentsIn, pick, type Random } from '../ledger/random.ts'
import type { ReceiptEndpoint } from './receipt-endpoint.ts'
import type { ReceiptPlan } from './receipt-plans.ts'
import type { Way } from './receipts-figures.ts'

/** How many open deliveries a worker should have when it is restarted. */
const OPEN_DELIVERIES = 5

export interface ReceiptWorkers {
  /** Restarts workers one after the other while the load lasts. Afterwards, the number of workers is the same as before. */
  restart(way: Way, plan: ReceiptPlan, random: Random): Promise<readonly Exit[]>
}

/** Resolves when every worker is ready. A worker that does not exit within `killAfterMs` of SIGTERM is killed. */
export async function startReceiptWorkers(
  programs: Programs,
  endpoint: ReceiptEndpoint,
  { workers: many, killAfterMs }: { readonly workers: number; readonly killAfterMs: number },
): Promise<ReceiptWorkers> {
  let started = 0
  const start = async (): Promise<{ by: string; process: Program }> => {
    const by = `w${++started}`
    return { by, process: await programs.start('worker', { BULLPEN_WORKER_RECEIPT_ENDPOINT: endpoint.url(by) }) }
  }
  let workers = await Promise.all(Array.from({ length: many }, start))
  return {
    async restart(way, { receipts, ratePerSecond, restarts }, random) {
      const exits: Exit[] = []
      const startedAt = performance.now()
      for (const moment of momentsIn((receipts / ratePerSecond) * 1_000, restarts, random)) {
        await sleep(Math.max(0, startedAt + moment - performance.now()))
        const [oldest] = workers
        const victim = way === 'kill' ? pick(workers, random) : oldest
        if (victim === undefined) throw new Error('no worker is left to restart')
        workers = workers.filter((worker) => worker !== victim)
        // As in a rolling update, the new worker is ready before the old one receives its signal to shut down. A worker that is
        // killed is replaced only afterwards.
        const replacement = way === 'kill' ? undefined : await start()
        await endpoint.holds(victim.by, OPEN_DELIVERIES)
        if (way === 'kill') await victim.process.kill()
        else exits.push(await victim.process.end(killAfterMs))
        workers = [...workers, replacement ?? (await start())]
      }
      return exits
    },
  }
}
