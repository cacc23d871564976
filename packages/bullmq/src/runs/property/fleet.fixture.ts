// Opens several worker processes, and disturbs them as a random program says.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { openWorkerProcess, type WorkerProcess } from '../worker-process.fixture.ts'
import type { Ledger } from './ledger.fixture.ts'
import { catalogue, handlersOf } from './pipeline.fixture.ts'
import type { Disturbance, PlannedRun, Program } from './program.fixture.ts'

const PROCESSES = 3
/** How long a frozen process is cut off, in ms. Its locks are deleted at once. */
const FROZEN_MS = 300

export interface FleetOptions {
  readonly redisUrl: string
  readonly redis: Redis
  readonly namespace: string
  readonly runs: readonly { readonly planned: PlannedRun; readonly ledger: Ledger }[]
}

export interface Fleet {
  /** Disturbs the processes one after the other, and calls `onDisturbed` after each time. Resolves early if the signal aborts. */
  disturb(onDisturbed: () => void, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

export async function openFleet(program: Program, { runs, ...common }: FleetOptions): Promise<Fleet> {
  const handlersFor = handlersOf(runs)
  const opened: WorkerProcess[] = []
  let living: readonly WorkerProcess[] = []

  async function open(): Promise<void> {
    const name = `process-${opened.length + 1}`
    const created: { process?: WorkerProcess } = {}
    const handlers = handlersFor({ name, isLost: () => created.process?.isLost() ?? false })
    const retention = program.keepsTasks ? {} : { completed: { count: 0 } }
    const process = await openWorkerProcess({ ...common, name, catalogue, handlers, retention, slots: program.slots })
    created.process = process
    opened.push(process)
    living = [...living, process]
  }

  async function apply({ kind, process: index }: Disturbance): Promise<void> {
    const leader = kind === 'kill leader' ? living.find((each) => each.isLeading()) : undefined
    const chosen = leader ?? living[index % living.length]
    if (chosen === undefined) return
    const lost = (): void => {
      for (const { ledger } of runs) ledger.lost(chosen.name)
    }
    if (kind === 'freeze') {
      await chosen.freeze()
      lost()
      await sleep(FROZEN_MS)
      chosen.thaw()
      return
    }
    living = living.filter((each) => each !== chosen)
    if (kind === 'drain') await chosen.drain()
    else {
      await chosen.kill()
      lost()
    }
    await open()
  }

  for (let i = 0; i < PROCESSES; i++) await open()
  return {
    async disturb(onDisturbed, signal) {
      const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
      for (const each of program.disturbances) {
        const further = runs.map(({ ledger }) => ledger.further(Math.ceil(each.after / runs.length)))
        await Promise.race([aborted, ...further])
        if (signal.aborted) return
        await apply(each)
        onDisturbed()
      }
    },
    async close() {
      await Promise.all(opened.map((each) => each.close()))
    },
  }
}
