// How isolates come and go: started when needed, reused, replaced with backoff, and none left after the close.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { IsolatedTask } from '@bullpen/engine/internal'
import { eventually, fakeClock } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openIsolator } from './open-isolator.ts'
import { isAlive, keptLog, openRig, outputOf } from './rig.fixture.ts'
import * as tasks from './tasks.fixture.ts'

interface Place {
  readonly pid: number
  readonly thread: number
}

const ISOLATIONS: readonly IsolatedTask['isolation'][] = ['thread', 'process']
const BROKEN = new URL('./broken.fixture.ts', import.meta.url).href
const UNABLE = new URL('./unable.fixture.ts', import.meta.url).href
const RESOURCES = new URL('./resources.fixture.ts', import.meta.url).href

describe.each(ISOLATIONS)('an isolator, by %s,', (isolation) => {
  it('runs as many at a time as it may; the others wait their turn', async () => {
    await using rig = openRig(isolation, { threads: { max: 2 }, processes: { max: 2 } })
    const first = [rig.run(tasks.wait, { for: 'timer' }), rig.run(tasks.wait, { for: 'timer' })]
    const third = rig.run(tasks.wait, { for: 'timer' })
    const fourth = rig.run(tasks.where)
    await Promise.all(first.map((run) => run.said('waiting')))
    expect(third.lines).toEqual([])
    third.kill()
    expect(await third.outcome).toMatchObject({ reason: 'isolate_died', error: { message: /while it waited/ } })
    first[0]?.signal(new DOMException('your turn is over', 'AbortError'))
    await outputOf(fourth)
    first[1]?.signal(new DOMException('and yours', 'AbortError'))
    await Promise.all(first.map((run) => run.outcome))
  })

  it('starts more for those that come, once it may have more', async () => {
    const most = { max: 1 }
    const max = () => most.max
    await using rig = openRig(isolation, { threads: { max }, processes: { max } })
    const first = rig.run(tasks.wait, { for: 'timer' })
    const second = rig.run(tasks.wait, { for: 'timer' })
    await first.said('waiting')
    expect(second.lines).toEqual([])
    most.max = 3
    const third = rig.run(tasks.wait, { for: 'timer' })
    await Promise.all([second.said('waiting'), third.said('waiting')])
    for (const run of [first, second, third]) run.signal(new DOMException('enough', 'AbortError'))
    await Promise.all([first, second, third].map((run) => run.outcome))
  })

  it('ends a handler whose module can not be imported, with the cause, without losing its isolates one by one', async () => {
    await using rig = openRig(isolation)
    const module = BROKEN
    for (let attempt = 1; attempt <= 20; attempt++) {
      expect(await rig.run(tasks.broken, {}, { module }).outcome).toMatchObject({
        kind: 'panicked',
        reason: 'unexpected_error',
        error: { message: /test.broken can't be imported/, cause: { name: 'RangeError', message: 'broken at import' } },
      })
    }
    // Once: a fresh isolate may find the module mended.
    expect(rig.replaced.map(({ cause }) => cause)).toEqual(['import_failed'])
    await outputOf(rig.run(tasks.where))
  })

  it('ends a handler that its module does not export', async () => {
    await using rig = openRig(isolation)
    expect(await rig.run(tasks.where, {}, { module: RESOURCES }).outcome).toMatchObject({
      reason: 'unexpected_error',
      error: { cause: { name: 'BullpenError', message: /exports no handler of test.where/ } },
    })
  })

  it('backs off while isolates die before they come as far as a handler', async () => {
    const clock = fakeClock()
    await using rig = openRig(isolation, { clock, random: () => 0.5, resources: UNABLE })
    const died = {
      reason: 'isolate_died',
      error: { message: /could not open its resources/, cause: { code: 'E_OFF' } },
    }
    expect(await rig.run(tasks.where).outcome).toMatchObject(died)
    for (const backoffMs of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
      await eventually(() => rig.replaced.length === rig.own.lines.length)
      const failures = rig.own.lines.length
      const next = rig.run(tasks.where)
      await clock.advance(backoffMs - 1)
      expect([rig.own.lines.length, clock.pending()]).toEqual([failures, 1])
      await clock.advance(1)
      expect(await next.outcome).toMatchObject(died)
    }
    expect(new Set(rig.replaced.map(({ cause }) => cause))).toEqual(new Set(['unable_to_start']))
    expect(rig.own.lines[0]).toMatchObject({ level: 'error', err: { message: 'the database is away' } })
  })

  it('does not back off for what a task did: exits in a row are replaced at once', async () => {
    await using rig = openRig(isolation, { clock: fakeClock() })
    for (let i = 0; i < 3; i++) {
      expect(await rig.run(tasks.exit, { code: 1 }).outcome).toMatchObject({ reason: 'isolate_died' })
    }
    expect(rig.replaced).toHaveLength(3)
  })

  it('ends those that have had nothing to do', async () => {
    const clock = fakeClock()
    await using rig = openRig(isolation, { clock, idleMs: 5_000 })
    const before = await outputOf<Place>(rig.run(tasks.where))
    await clock.advance(4_999)
    expect(await outputOf(rig.run(tasks.where))).toMatchObject({ pid: before.pid, thread: before.thread })
    await clock.advance(5_000)
    // Only the limit to its closing is timed, until it is gone.
    await eventually(() => clock.pending() === 0)
    const after = await outputOf<Place>(rig.run(tasks.where))
    expect([after.pid, after.thread]).not.toEqual([before.pid, before.thread])
    expect(rig.replaced).toEqual([])
  })

  it('closes what its isolates opened, in reverse', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'bullpen-sandbox-'))
    const file = join(dir, 'closed')
    process.env['BULLPEN_TEST_CLOSED'] = file
    onTestFinished(() => {
      delete process.env['BULLPEN_TEST_CLOSED']
      rmSync(dir, { recursive: true })
    })
    const rig = openRig(isolation, { resources: RESOURCES })
    await outputOf(rig.run(tasks.resource))
    await rig.isolator.close()
    expect(readFileSync(file, 'utf8')).toBe('second\nfirst\n')
  })

  it('kills what still runs when it closes, and hands on what has not begun', async () => {
    const rig = openRig(isolation)
    const looping = rig.run(tasks.loop)
    const waiting = rig.run(tasks.where)
    const { pid } = await looping.said('looping')
    await rig.isolator.close()
    expect(await looping.outcome).toMatchObject({ kind: 'panicked', reason: 'isolate_died' })
    expect(await waiting.outcome).toEqual({ kind: 'closed', reason: 'parent_closed' })
    expect(await rig.run(tasks.where).outcome).toEqual({ kind: 'closed', reason: 'parent_closed' })
    if (isolation === 'process') expect(isAlive(Number(pid))).toBe(false)
  })

  it('leaves nothing behind', async () => {
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

it('refuses to have no isolates at all', () => {
  const { log } = keptLog()
  expect(() => openIsolator({ threads: { max: 0 }, processes: { max: 1 }, log })).toThrow(
    expect.objectContaining({ code: 'invalid_configuration', message: expect.stringContaining('max is 0') }),
  )
})
