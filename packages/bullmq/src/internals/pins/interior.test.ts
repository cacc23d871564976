// BullMQ's scripts, what BullMQ sends to them and the methods that Bullpen relies on are those that Bullpen was written for.
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FLAGGED } from '../../store/bullmq-scripts.ts'
import { differences, type PinnedInterior, pinned } from './compare.fixture.ts'
import { installedBullmq, readInterior } from './interior.fixture.ts'
import { PINNED } from './pinned-table.fixture.ts'
import { RELIANT_FILES, reliantFiles } from './reliant-files.fixture.ts'

const messages = (before: PinnedInterior, after: PinnedInterior): string[] =>
  differences(before, after).map(({ message }) => message)

describe('the installed BullMQ', () => {
  it('has the version, the scripts, the arguments and the methods that Bullpen was written for', async () => {
    const installed = pinned(await readInterior(installedBullmq()))
    expect(messages(PINNED, installed)).toEqual([])
    expect(installed.version).toBe(PINNED.version)
  })

  it('has a pinned text for every script that runs and writes, and pinned arguments for every one that BullMQ sends', async () => {
    const names = [...FLAGGED.keys()]
    expect(Object.keys(PINNED.scripts)).toEqual(expect.arrayContaining(names))
    const sent = new Set(Object.keys(PINNED.arguments).map((label) => label.split(' ')[0]))
    // A job that gives its deduplication id back sends this one, which the table leaves out.
    expect(names.filter((name) => !sent.has(name))).toEqual(['removeDeduplicationKey'])
    expect(Object.entries(PINNED.arguments).filter(([, args]) => args.length < 2)).toEqual([])
  })
})

it('every file that a difference names exists', () => {
  const source = join(import.meta.dirname, '../..')
  expect([...RELIANT_FILES].filter((file) => !existsSync(join(source, file)))).toEqual([])
})

/** A copy of the installed package whose dependencies are those of the original. */
function copyOfBullmq(): string {
  const directory = mkdtempSync(join(tmpdir(), 'bullpen-bullmq-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const installed = installedBullmq()
  cpSync(join(installed, 'package.json'), join(directory, 'package.json'))
  cpSync(join(installed, 'dist/cjs'), join(directory, 'dist/cjs'), { recursive: true })
  symlinkSync(dirname(installed), join(directory, 'node_modules'))
  return directory
}

function edit(file: string, from: string, to: string): void {
  const text = readFileSync(file, 'utf8')
  expect(text).toContain(from)
  writeFileSync(file, text.replace(from, to))
}

describe('in a copy of BullMQ', () => {
  it('that is unchanged, nothing differs', async () => {
    expect(messages(PINNED, pinned(await readInterior(copyOfBullmq())))).toEqual([])
  })

  it('a changed line of a script is reported with the script and the files that rely on it', async () => {
    const copy = copyOfBullmq()
    edit(
      join(copy, 'dist/cjs/scripts/moveToDelayed-11.js'),
      'rcall("HINCRBY", jobKey, "atm", 1)',
      'rcall("HINCRBY", jobKey, "atm", 2)',
    )
    expect(messages(PINNED, pinned(await readInterior(copy)))).toEqual([
      `the text of BullMQ's script moveToDelayed has changed; look at ${reliantFiles('script', 'moveToDelayed').join(', ')}`,
    ])
    expect(reliantFiles('script', 'moveToDelayed')).toContain('store/lua/end-and-start.lua')
  })

  it('an argument at another position is reported with both positions, and with the method that sends it', async () => {
    const copy = copyOfBullmq()
    edit(
      join(copy, 'dist/cjs/classes/redis-queue-backend.js'),
      'const args = [jobId, token, this.queue.toKey(jobId)];',
      'const args = [token, jobId, this.queue.toKey(jobId)];',
    )
    expect(messages(PINNED, pinned(await readInterior(copy)))).toEqual([
      'BullMQ sends other keys or arguments to moveJobFromActiveToWait, by position: 9: <id> → <token>; ' +
        `10: <token> → <id>; look at ${reliantFiles('script', 'moveJobFromActiveToWait').join(', ')}`,
      'the text of RedisQueueBackend.moveJobFromActiveToWait has changed; look at store/moves.ts, processor.ts',
    ])
  })

  it('a new script, a script that is gone and a changed method are reported, but a changed comment of a method is not', async () => {
    const copy = copyOfBullmq()
    edit(join(copy, 'dist/cjs/scripts/promote-9.js'), "name: 'promote'", "name: 'advance'")
    edit(join(copy, 'dist/cjs/classes/worker.js'), 'this.running = true;', 'this.running = true; void 0;')
    edit(join(copy, 'dist/cjs/classes/worker.js'), '// We must await here', '// We have to await here')
    expect(messages(PINNED, pinned(await readInterior(copy)))).toEqual([
      "BullMQ's script promote no longer exists; look at store/lua/promote-task.lua, store/backend-changes.ts",
      'BullMQ has a new script, advance; decide in store/bullmq-scripts.ts whether it may run',
      'the text of Worker.run has changed; look at internals/worker/consumer-worker.ts, consumer.ts, plain-processor.ts',
    ])
  })
})
