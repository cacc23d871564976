// Conformance: whatever kills workers and child processes, only the tasks that kill them die as poison.
import type { TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { amount } from '../../scale.ts'
import type { OpenBackend } from '../backend.ts'
import { type Handle, long, short } from '../setup.ts'

import { childProcesses, killed, openQuarantine, returned } from './quarantine-setup.ts'

export function randomKills(open: OpenBackend): void {
  it.each([true, false])(
    'each task that kills its process is dead as poison, and no other task is dead because of a killed worker (child processes: %s)',
    async (hasProcesses) => {
      const kinds = fc.array(fc.constantFrom('innocent', 'pill', 'failing'), { minLength: 3, maxLength: 5 })
      const chances = fc.infiniteStream(fc.nat({ max: 9 }))
      const property = fc.asyncProperty(kinds, chances, (tasks, stream) =>
        runPills(open, tasks, hasProcesses, () => stream.next().value),
      )
      await fc.assert(property, { numRuns: amount({ small: 1, full: 20 }), endOnFailure: true })
    },
    amount({ small: 60_000, full: 600_000 }),
  )
}

type Kind = 'innocent' | 'pill' | 'failing'

/**
 * Runs tasks of these kinds in two workers. A pill kills whatever runs it: its worker, or its child process. Now and then, a worker
 * is also killed for no reason while it runs something in child processes.
 */
async function runPills(
  open: OpenBackend,
  kinds: readonly Kind[],
  hasProcesses: boolean,
  chance: () => number,
): Promise<void> {
  const kindOf = (n: number): Kind => kinds[n] ?? 'innocent'
  const pills: TaskId[] = []
  const handle: Handle = ({ input: { n }, id }) => {
    const kind = kindOf(n)
    if (kind === 'pill') {
      pills.push(id)
      return new Promise(() => {})
    }
    if (kind === 'failing' && chance() < 3) throw new Error('failed by itself')
    return new Promise((resolve) => setTimeout(() => resolve({ n }), 10 * chance()))
  }
  const isolator = childProcesses(async ({ input }) => {
    const { n } = input as { readonly n: number }
    if (kindOf(n) === 'pill') return killed
    await new Promise((resolve) => setTimeout(resolve, 10 * chance()))
    return returned(n)
  })
  const setup = await openQuarantine(open, {
    handle,
    concurrency: 6,
    ...(hasProcesses && { processes: { max: 3, isolator } }),
  })
  const { enqueue, pool, find, die, drain } = setup
  let started = 0
  let killsLeft = 3
  const workers = new Map<string, ReturnType<typeof pool>>()
  const startWorker = async (): Promise<void> => {
    const name = `w:${started++}`
    const created = pool(name)
    workers.set(name, created)
    await created.start()
  }
  const tasksOf = (worker: string): readonly TaskId[] =>
    workers
      .get(worker)
      ?.slots()
      .flatMap(({ task }) => (task === undefined ? [] : [task.id as TaskId])) ?? []
  const kill = async (worker: string): Promise<void> => {
    const lost = tasksOf(worker)
    workers.delete(worker)
    await die(worker, ...lost)
    await startWorker()
  }
  await startWorker()
  await startWorker()
  const ids = await Promise.all(kinds.map((kind, n) => enqueue(kind === 'pill' ? short : long, { n })))
  await eventually(async () => {
    const pill = pills.pop()
    const worker = [...workers.keys()].find((each) => pill !== undefined && tasksOf(each).includes(pill))
    if (worker !== undefined) await kill(worker)
    else if (hasProcesses && killsLeft > 0 && chance() === 0) {
      killsLeft--
      await kill([...workers.keys()][0] ?? '')
    }
    const records = await Promise.all(ids.map(find))
    return records.every(({ status }) => status === 'completed' || status === 'dead')
  }, 30_000)
  // All tasks have ended. What is left are the handlers in the pools that died, which never end.
  await drain({ drainMs: 0, graceMs: 100 })
  for (const [n, id] of ids.entries()) {
    const { status, attempts, attemptsMade } = await find(id)
    const last = attempts.at(-1)
    if (kindOf(n) === 'pill') expect([status, last?.reason, attemptsMade]).toEqual(['dead', 'poison', 0])
    else if (kindOf(n) === 'innocent') expect([status, attemptsMade]).toEqual(['completed', 1])
    else expect(last?.reason).not.toBe('poison')
  }
}
