// The worker processes of a receipts drill, and how they are restarted while they deliver.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Exit } from '../ledger/figures.ts'
import { momentsIn, pick, type Random } from '../ledger/random.ts'
import type { Program, Programs } from '../programs/programs.ts'
import type { ReceiptEndpoint } from './receipt-endpoint.ts'
import type { ReceiptPlan } from './receipt-plans.ts'
import type { Way } from './receipts-figures.ts'

/** Of a process, when it is ended. */
const IN_HAND = 5

export interface ReceiptWorkers {
  /** In the middle of the load, one process after the other; as many work afterwards as before. */
  restart(way: Way, plan: ReceiptPlan, random: Random): Promise<readonly Exit[]>
}

/** Resolves when all of them are ready. A process that was told to end is killed after `exitAtMostMs`. */
export async function startReceiptWorkers(
  programs: Programs,
  endpoint: ReceiptEndpoint,
  { workers: many, exitAtMostMs }: { readonly workers: number; readonly exitAtMostMs: number },
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
      const began = performance.now()
      for (const moment of momentsIn((receipts / ratePerSecond) * 1_000, restarts, random)) {
        await sleep(Math.max(0, began + moment - performance.now()))
        const [oldest] = workers
        const victim = way === 'kill' ? pick(workers, random) : oldest
        if (victim === undefined) throw new Error('there is no process to restart')
        workers = workers.filter((worker) => worker !== victim)
        // As a rolling update does: the new one is ready before the old one is told to end. Nobody tells of a kill before.
        const replacement = way === 'kill' ? undefined : await start()
        await endpoint.holds(victim.by, IN_HAND)
        if (way === 'kill') await victim.process.kill()
        else exits.push(await victim.process.end(exitAtMostMs))
        workers = [...workers, replacement ?? (await start())]
      }
      return exits
    },
  }
}
