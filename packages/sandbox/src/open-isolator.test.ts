// Tests that isolates are started when needed, reused, replaced with backoff, and gone after close.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { IsolatedTask } from '@bullpen/engine/internal'
import { eventually, fakeClock } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openIsolator } from './open-isolator.ts'
import { isAlive, openSetup, outputOf, recordingLog } from './setup.fixture.ts'
import * as tasks from './tasks.fixture.ts'

interface Place {
  readonly pid: number
  readonly thread: number
}

const ISOLATIONS: readonly IsolatedTask['isolation'][] = ['thread', 'process']
const BROKEN = new URL('./broken.fixture.ts', import.meta.url).href
const UNABLE = new URL('./unable.fixture.ts', import.meta.url).href
const RESOURCES = new URL('./resources.fixture.ts', import.meta.url).href

describe.each(ISOLATIONS)('an isolator with isolation %s', (isolation) => {
  it('runs at most max tasks at a time; the others wait their turn', async () => {
    await using setup = openSetup(isolation, { threads: { max: 2 }, processes: { max: 2 } })
    const first = [setup.run(tasks.wait, { for: 'timer' }), setup.run(tasks.wait, { for: 'timer' })]
    const third = setup.run(tasks.wait, { for: 'timer' })
    const fourth = setup.run(tasks.where)
    await Promise.all(first.map((run) => run.logged('waiting')))
    expect(third.lines).toEqual([])
    third.kill()
    expect(await third.outcome).toMatchObject({ reason: 'isolate_died', error: { message: /while it waited/ } })
    first[0]?.signal(new DOMException('your turn is over', 'AbortError'))
    await outputOf(fourth)
    first[1]?.signal(new DOMException('and yours', 'AbortError'))
    await Promise.all(first.map((run) => run.outcome))
  })

  it('starts more isolates when max grows', async () => {
    const most = { max: 1 }
    const max = () => most.max
    await using setup = openSetup(isolation, { threads: { max }, processes: { max } })
    const first = setup.run(tasks.wait, { for: 'timer' })
    const second = setup.run(tasks.wait, { for: 'timer' })
    await first.logged('waiting')
    expect(second.lines).toEqual([])
    most.max = 3
    const third = setup.run(tasks.wait, { for: 'timer' })
    await Promise.all([second.logged('waiting'), third.logged('waiting')])
    for (const run of [first, second, third]) run.signal(new DOMException('enough', 'AbortError'))
    await Promise.all([first, second, third].map((run) => run.outcome))
  })

  it('ends an attempt whose module can’t be imported, and does not replace its isolate every time', async () => {
    await using setup = openSetup(isolation)
    const module = BROKEN
    for (let attempt = 1; attempt <= 20; attempt++) {
      expect(await setup.run(tasks.broken, {}, { module }).outcome).toMatchObject({
        kind: 'panicked',
        reason: 'unexpected_error',
        error: {
          message: /test.broken cannot be imported/,
          cause: { name: 'RangeError', message: 'broken at import' },
        },
      })
    }
    // Once, since a new isolate may find the module repaired.
    expect(setup.replaced.map(({ cause }) => cause)).toEqual(['import_failed'])
    await outputOf(setup.run(tasks.where))
  })

  it('ends an attempt whose module does not export its handler', async () => {
    await using setup = openSetup(isolation)
    expect(await setup.run(tasks.where, {}, { module: RESOURCES }).outcome).toMatchObject({
      reason: 'unexpected_error',
      error: { cause: { name: 'BullpenError', message: /does not export a handler for test.where/ } },
    })
  })

  it('backs off while isolates die before they have imported a handler', async () => {
    const clock = fakeClock()
    await using setup = openSetup(isolation, { clock, random: () => 0.5, resources: UNABLE })
    const died = {
      reason: 'isolate_died',
      error: { message: /could not open its resources/, cause: { code: 'E_OFF' } },
    }
    expect(await setup.run(tasks.where).outcome).toMatchObject(died)
    for (const backoffMs of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
      await eventually(() => setup.replaced.length === setup.own.lines.length)
      const failures = setup.own.lines.length
      const next = setup.run(tasks.where)
      await clock.advance(backoffMs - 1)
      expect([setup.own.lines.length, clock.pending()]).toEqual([failures, 1])
      await clock.advance(1)
      expect(await next.outcome).toMatchObject(died)
    }
    expect(new Set(setup.replaced.map(({ cause }) => cause))).toEqual(new Set(['unable_to_start']))
    expect(setup.own.lines[0]).toMatchObject({ level: 'error', err: { message: 'the database is away' } })
  })

  it('replaces isolates at once that tasks have ended', async () => {
    await using setup = openSetup(isolation, { clock: fakeClock() })
    for (let i = 0; i < 3; i++) {
      expect(await setup.run(tasks.exit, { code: 1 }).outcome).toMatchObject({ reason: 'isolate_died' })
    }
    expect(setup.replaced).toHaveLength(3)
  })

  it('ends idle isolates', async () => {
    const clock = fakeClock()
    await using setup = openSetup(isolation, { clock, idleMs: 5_000 })
    const before = await outputOf<Place>(setup.run(tasks.where))
    await clock.advance(4_999)
    expect(await outputOf(setup.run(tasks.where))).toMatchObject({ pid: before.pid, thread: before.thread })
    await clock.advance(5_000)
    // The only timer is the limit of its closing, until it is gone.
    await eventually(() => clock.pending() === 0)
    const after = await outputOf<Place>(setup.run(tasks.where))
    expect([after.pid, after.thread]).not.toEqual([before.pid, before.thread])
    expect(setup.replaced).toEqual([])
  })

  it('closes the resources of its isolates in reverse order', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'bullpen-sandbox-'))
    const file = join(dir, 'closed')
    process.env['BULLPEN_TEST_CLOSED'] = file
    onTestFinished(() => {
      delete process.env['BULLPEN_TEST_CLOSED']
      rmSync(dir, { recursive: true })
    })
    const setup = openSetup(isolation, { resources: RESOURCES })
    await outputOf(setup.run(tasks.resource))
    await setup.isolator.close()
    expect(readFileSync(file, 'utf8')).toBe('second\nfirst\n')
  })

  it('kills what runs when it closes, and ends waiting runs as closed', async () => {
    const setup = openSetup(isolation)
    const looping = setup.run(tasks.loop)
    const waiting = setup.run(tasks.where)
    const { pid } = await looping.logged('looping')
    await setup.isolator.close()
    expect(await looping.outcome).toMatchObject({ kind: 'panicked', reason: 'isolate_died' })
    expect(await waiting.outcome).toEqual({ kind: 'closed', reason: 'parent_closed' })
    expect(await setup.run(tasks.where).outcome).toEqual({ kind: 'closed', reason: 'parent_closed' })
    if (isolation === 'process') expect(isAlive(Number(pid))).toBe(false)
  })

  it('leaves no process, thread or timer behind', async () => {
    const child = spawn(process.execPath, [new URL('./residue.fixture.ts', import.meta.url).pathname, isolation], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const text = await new Response(new Blob(await child.stdout.toArray())).text()
    const { before, during, after, children } = JSON.parse(text)
    expect(during.length).toBeGreaterThan(before.length)
    expect(after).toEqual(before)
    expect(children).toEqual([])
  })
})

it('an isolator without any isolates is refused', () => {
  const { log } = recordingLog()
  expect(() => openIsolator({ threads: { max: 0 }, processes: { max: 1 }, log })).toThrow(
    expect.objectContaining({
      code: 'invalid_configuration',
      message: expect.stringContaining("max for isolation 'thread' is 0"),
    }),
  )
})
