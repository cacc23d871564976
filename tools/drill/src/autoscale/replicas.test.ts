// Tests which workers are started and ended, without processes.
import { expect, it } from 'vitest'
import type { WorkerProcess } from '../environment/fleet.ts'
import { createReplicas } from './replicas.ts'

/** Workers start and exit only when the test lets them. */
function setup() {
  const starts: (() => void)[] = []
  const exits = new Map<string, () => void>()
  let changes = 0
  const start = (): Promise<WorkerProcess> => {
    const name = `w${starts.length + 1}`
    const { promise, resolve } = Promise.withResolvers<WorkerProcess>()
    const exited = Promise.withResolvers<void>()
    const worker = {
      url: `http://${name}/`,
      async end() {
        exits.set(name, exited.resolve)
        await exited.promise
        return { worker: name, code: 0, at: 0, tookMs: 0 }
      },
    }
    starts.push(() => resolve(worker as unknown as WorkerProcess))
    return promise
  }
  const replicas = createReplicas({ start, killAfterMs: 1, changed: () => changes++ })
  const state = () => [replicas.count, replicas.running(), replicas.draining(), changes]
  return { replicas, starts, exits, state }
}

/** Lets everything happen that is already decided. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

it('workers are started at once, and the newest is ended first', async () => {
  const { replicas, starts, exits, state } = setup()
  replicas.scaleTo(3)
  expect(state()).toEqual([3, 0, 0, 0])
  for (const start of starts) start()
  await settle()
  expect(state()).toEqual([3, 3, 0, 3])
  replicas.scaleTo(1)
  await settle()
  expect(state()).toEqual([1, 1, 2, 3])
  expect([...exits.keys()]).toEqual(['w3', 'w2'])
})

it('a draining worker is scraped until it has exited, and its place can be taken meanwhile', async () => {
  const { replicas, starts, exits, state } = setup()
  replicas.scaleTo(2)
  for (const start of starts.splice(0)) start()
  await settle()
  replicas.scaleTo(1)
  replicas.scaleTo(2)
  await settle()
  expect(replicas.urls()).toEqual(['http://w1/', 'http://w2/'])
  expect(starts).toHaveLength(1)
  exits.get('w2')?.()
  await settle()
  expect([replicas.urls(), replicas.exits.length]).toEqual([['http://w1/'], 1])
  expect(state()).toEqual([2, 1, 0, 3])
})

it('a worker that is removed before it has started is ended when it has', async () => {
  const { replicas, starts, exits } = setup()
  replicas.scaleTo(1)
  replicas.scaleTo(0)
  starts[0]?.()
  await settle()
  exits.get('w1')?.()
  await replicas.settled()
  expect([replicas.count, replicas.running(), replicas.exits.length]).toEqual([0, 0, 1])
})
