// Tests what only child processes offer: memory limits, and crashes that end only one attempt.
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { childStarter } from './isolate/child-process.ts'
import { IsolatePool } from './isolate/isolate-pool.ts'
import { isAlive, openSetup, outputOf, recordingLog } from './setup.fixture.ts'
import * as tasks from './tasks.fixture.ts'

interface Place {
  readonly pid: number
}

const MiB = 2 ** 20
/** Longer than a process takes to exit that nothing keeps alive. */
const IDLE_MS = 200

describe('a memory limit', () => {
  it.each(['objects', 'array', 'map', 'json', 'buffers'])(
    'ends an attempt that runs out of memory by %s, and no other task',
    async (how) => {
      await using setup = openSetup('process', { processes: { max: 2 } })
      const other = setup.run(tasks.wait, { for: 'timer' })
      await other.logged('waiting')
      const outcome = await setup.run(tasks.memory, { how }, { memoryLimitBytes: 64 * MiB }).outcome
      expect(outcome).toMatchObject({ kind: 'panicked', reason: 'out_of_memory' })
      expect(String('error' in outcome && outcome.error)).toMatch(
        /^Error: process \d+ (ran out|used \d+ MiB).* 64 MiB$/,
      )
      other.signal(new DOMException('that is enough', 'AbortError'))
      expect(await outputOf(other)).toMatchObject({ reason: expect.stringContaining('that is enough') })
      expect(setup.replaced).toMatchObject([{ cause: 'out_of_memory', of: { task: 'test.memory' } }])
    },
  )

  it('needs a process of its own: idle processes with another limit make room', async () => {
    await using setup = openSetup('process')
    const limits = [undefined, 128 * MiB, 64 * MiB, 64 * MiB]
    const pids: number[] = []
    for (const memoryLimitBytes of limits) {
      pids.push((await outputOf<Place>(setup.run(tasks.where, {}, { memoryLimitBytes }))).pid)
    }
    expect(new Set(pids).size).toBe(3)
    expect(pids[3]).toBe(pids[2])
    expect(setup.replaced.map(({ cause }) => cause)).toEqual(['made_room', 'made_room'])
  })

  it('counts what earlier tasks left: a process that is half full is replaced', async () => {
    await using setup = openSetup('process')
    const memoryLimitBytes = 64 * MiB
    const first = await outputOf<Place>(setup.run(tasks.keep, { bytes: 8 * MiB }, { memoryLimitBytes }))
    const second = await outputOf<Place>(setup.run(tasks.keep, { bytes: 60 * MiB }, { memoryLimitBytes }))
    const third = await outputOf<Place>(setup.run(tasks.where, {}, { memoryLimitBytes }))
    expect([second.pid === first.pid, third.pid === first.pid]).toEqual([true, false])
    expect(setup.replaced).toMatchObject([{ cause: 'full' }])
  })

  it('is refused for a thread', async () => {
    await using setup = openSetup('thread')
    expect(() => setup.run(tasks.where, {}, { memoryLimitBytes: 64 * MiB })).toThrow(
      expect.objectContaining({ code: 'invalid_definition' }),
    )
  })

  it('is enforced by what the child reports where its memory can’t be read', async () => {
    const { log } = recordingLog()
    const reaper = { watch() {}, forget() {}, close: async () => {} }
    const pool = new IsolatePool({
      isolation: 'process',
      max: 1,
      startIsolate: childStarter(reaper, () => undefined),
      reportMemory: true,
      clock: systemClock,
      random: () => 0.5,
      log,
      resources: undefined,
      idleMs: 1_000,
      onReplaced() {},
    })
    await using setup = openSetup('process', {}, pool)
    const run = setup.run(tasks.keep, { bytes: 400 * MiB, wait: true }, { memoryLimitBytes: 64 * MiB })
    expect(await run.outcome).toMatchObject({ reason: 'out_of_memory', error: { message: /used \d+ MiB/ } })
  })
})

describe('a child process', () => {
  it('killed from outside ends its attempt, naming the signal, and is replaced', async () => {
    await using setup = openSetup('process')
    const run = setup.run(tasks.loop)
    const { pid } = await run.logged('looping')
    process.kill(Number(pid), 'SIGKILL')
    expect(await run.outcome).toMatchObject({
      kind: 'panicked',
      reason: 'isolate_died',
      error: { message: `process ${pid} was terminated by SIGKILL` },
    })
    await outputOf(setup.run(tasks.where))
    expect(setup.replaced).toMatchObject([{ cause: 'isolate_died', of: { id: run.task.id } }])
  })

  it('ignores signals that a service manager sends to every process, because the worker handles them', async () => {
    await using setup = openSetup('process')
    const run = setup.run(tasks.wait, { for: 'timer' })
    const { pid } = await run.logged('waiting')
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.kill(Number(pid), signal)
    run.signal(new DOMException('by the parent', 'AbortError'))
    expect(await outputOf(run)).toMatchObject({ reason: expect.stringContaining('by the parent') })
  })

  it.each(['return', 'exit', 'loop', 'wait'])(
    'ends with the programs that its handler has started: %s',
    async (next) => {
      const setup = openSetup('process')
      const run = setup.run(tasks.program, { next })
      const pid = Number((await run.logged('started'))['pid'])
      expect(isAlive(pid)).toBe(true)
      if (next === 'loop' || next === 'wait') run.kill()
      await run.outcome
      // An idle process ends when its worker drains.
      if (next === 'return') await setup.isolator.close()
      await eventually(() => !isAlive(pid))
      await setup.isolator.close()
    },
  )

  it.each(['loop', 'wait', 'idle', 'program return', 'program loop', 'program wait'])(
    'dies when the group of its worker is killed: %s',
    async (what) => {
      const parent = spawn(
        process.execPath,
        [new URL('./parent.fixture.ts', import.meta.url).pathname, ...what.split(' ')],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
          detached: true,
        },
      )
      const exited = new Promise((resolve) => parent.once('exit', resolve))
      const pid = await new Promise<number>((resolve) =>
        createInterface({ input: parent.stdout }).once('line', (line) => resolve(Number(line))),
      )
      expect(isAlive(pid)).toBe(true)
      process.kill(-(parent.pid ?? 0), 'SIGKILL')
      await exited
      await eventually(() => !isAlive(pid))
    },
  )
})

it.each(['thread', 'process'] as const)(
  'a %s leaves what it has compiled to later ones, even if it is killed',
  async (isolation) => {
    const cache = mkdtempSync(join(tmpdir(), 'bullpen-compile-cache-'))
    onTestFinished(() => rmSync(cache, { recursive: true }))
    onTestFinished(() => void vi.unstubAllEnvs())
    vi.stubEnv('NODE_COMPILE_CACHE', cache)
    await using setup = openSetup(isolation)
    await outputOf<Place>(setup.run(tasks.where))
    // It still runs, so these files were not written because it ended.
    expect(readdirSync(cache, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())).not.toEqual([])
  },
)

it('a child process lives as long as its channel, even if a preloaded module has unreferenced it', async () => {
  const { execArgv } = process
  onTestFinished(() => {
    process.execArgv = execArgv
  })
  process.execArgv = ['--import', new URL('./unreferenced.fixture.ts', import.meta.url).href]
  await using setup = openSetup('process')
  const first = await outputOf<Place>(setup.run(tasks.where))
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
  expect(await outputOf<Place>(setup.run(tasks.where))).toMatchObject({ pid: first.pid })
})
