// What only child processes promise: memory limits, and an end by any signal that is one attempt's alone.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { childStarter } from './isolate/child-process.ts'
import { IsolatePool } from './isolate/isolate-pool.ts'
import { isAlive, keptLog, openRig, outputOf } from './rig.fixture.ts'
import * as tasks from './tasks.fixture.ts'

interface Place {
  readonly pid: number
}

const MiB = 2 ** 20

describe('a memory limit', () => {
  it.each(['objects', 'array', 'map', 'json', 'buffers'])(
    'ends an attempt that runs out of memory by %s, and no other task',
    async (how) => {
      await using rig = openRig('process', { processes: { max: 2 } })
      const other = rig.run(tasks.wait, { for: 'timer' })
      await other.said('waiting')
      const outcome = await rig.run(tasks.memory, { how }, { memoryLimitBytes: 64 * MiB }).outcome
      expect(outcome).toMatchObject({ kind: 'panicked', reason: 'out_of_memory' })
      expect(String('error' in outcome && outcome.error)).toMatch(
        /^Error: process \d+ (ran out|took \d+ MiB).* 64 MiB$/,
      )
      other.signal(new DOMException('that is enough', 'AbortError'))
      expect(await outputOf(other)).toMatchObject({ reason: expect.stringContaining('that is enough') })
      expect(rig.replaced).toMatchObject([{ cause: 'out_of_memory', of: { task: 'test.memory' } }])
    },
  )

  it('is of a process of its own: those with another limit, or none, make room', async () => {
    await using rig = openRig('process')
    const limits = [undefined, 128 * MiB, 64 * MiB, 64 * MiB]
    const pids: number[] = []
    for (const memoryLimitBytes of limits) {
      pids.push((await outputOf<Place>(rig.run(tasks.where, {}, { memoryLimitBytes }))).pid)
    }
    expect(new Set(pids).size).toBe(3)
    expect(pids[3]).toBe(pids[2])
    expect(rig.replaced.map(({ cause }) => cause)).toEqual(['made_room', 'made_room'])
  })

  it('counts what earlier tasks left: a process that they half filled is replaced', async () => {
    await using rig = openRig('process')
    const memoryLimitBytes = 64 * MiB
    const first = await outputOf<Place>(rig.run(tasks.keep, { bytes: 8 * MiB }, { memoryLimitBytes }))
    const second = await outputOf<Place>(rig.run(tasks.keep, { bytes: 60 * MiB }, { memoryLimitBytes }))
    const third = await outputOf<Place>(rig.run(tasks.where, {}, { memoryLimitBytes }))
    expect([second.pid === first.pid, third.pid === first.pid]).toEqual([true, false])
    expect(rig.replaced).toMatchObject([{ cause: 'full' }])
  })

  it('is refused for a thread', async () => {
    await using rig = openRig('thread')
    expect(() => rig.run(tasks.where, {}, { memoryLimitBytes: 64 * MiB })).toThrow(
      expect.objectContaining({ code: 'invalid_definition' }),
    )
  })

  it('is held by what the child says where its memory can not be looked up', async () => {
    const { log } = keptLog()
    const undertaker = { born() {}, died() {}, close: async () => {} }
    const pool = new IsolatePool({
      isolation: 'process',
      max: 1,
      startIsolate: childStarter(undertaker, () => undefined),
      reportMemory: true,
      clock: systemClock,
      random: () => 0.5,
      log,
      resources: undefined,
      idleMs: 1_000,
      onReplaced() {},
    })
    await using rig = openRig('process', {}, pool)
    const run = rig.run(tasks.keep, { bytes: 400 * MiB, wait: true }, { memoryLimitBytes: 64 * MiB })
    expect(await run.outcome).toMatchObject({ reason: 'out_of_memory', error: { message: /took \d+ MiB/ } })
  })
})

describe('a child process', () => {
  it('that is killed from outside ends its attempt, naming the signal, and is replaced', async () => {
    await using rig = openRig('process')
    const run = rig.run(tasks.loop)
    const { pid } = await run.said('looping')
    process.kill(Number(pid), 'SIGKILL')
    expect(await run.outcome).toMatchObject({
      kind: 'panicked',
      reason: 'isolate_died',
      error: { message: `process ${pid} was ended by SIGKILL` },
    })
    await outputOf(rig.run(tasks.where))
    expect(rig.replaced).toMatchObject([{ cause: 'isolate_died', of: { id: run.task.id } }])
  })

  it('lives on when its group is told to end: that is for its parent to decide', async () => {
    await using rig = openRig('process')
    const run = rig.run(tasks.wait, { for: 'timer' })
    const { pid } = await run.said('waiting')
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.kill(Number(pid), signal)
    run.signal(new DOMException('by the parent', 'AbortError'))
    expect(await outputOf(run)).toMatchObject({ reason: expect.stringContaining('by the parent') })
  })

  it.each(['loop', 'wait', 'idle'])('dies with its parent, however that is ended: %s', async (what) => {
    const parent = spawn(process.execPath, [new URL('./parent.fixture.ts', import.meta.url).pathname, what], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = new Promise((resolve) => parent.once('exit', resolve))
    const pid = await new Promise<number>((resolve) =>
      createInterface({ input: parent.stdout }).once('line', (line) => resolve(Number(line))),
    )
    expect(isAlive(pid)).toBe(true)
    parent.kill('SIGKILL')
    await exited
    await eventually(() => !isAlive(pid))
  })
})
