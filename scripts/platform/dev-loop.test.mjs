// `npm run dev`: which saves are seen, and what a broken file costs.
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { run } from '../system/programs.mjs'
import { startDevLoop } from './dev-loop.mjs'
import { watchFiles } from './file-watcher.mjs'

let dir
const open = []
const until = (check) => vi.waitFor(() => expect(check()).toBeTruthy(), { timeout: 120_000, interval: 10 })
const saveInPlace = (file, text) => {
  mkdirSync(dirname(join(dir, file)), { recursive: true })
  writeFileSync(join(dir, file), text)
}
/** As vim, formatters, sed -i and git save. */
const saveByRename = (file, text) => {
  writeFileSync(join(dir, `${file}~`), text)
  renameSync(join(dir, `${file}~`), join(dir, file))
}

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'bullpen-dev-'))
})
afterEach(() => {
  for (const { close } of open.splice(0)) close()
  rmSync(dir, { recursive: true, force: true })
})

describe('the file watcher', () => {
  let saved
  const watched = () => {
    saved = []
    open.push(watchFiles(dir, (file) => saved.push(file)))
  }
  /** Resolves when the save of `file` has been reported. */
  async function isSeen(save, file) {
    saved.length = 0
    save(file, `${file} ${performance.now()}`)
    await until(() => saved.includes(file))
  }

  it('sees every save of a file: in place, by rename, and again either way', async () => {
    saveInPlace('src/a.ts', '1')
    watched()
    for (const save of [saveInPlace, saveInPlace, saveByRename, saveInPlace, saveByRename, saveByRename, saveInPlace]) {
      await isSeen(save, 'src/a.ts')
    }
  })

  it('sees a new file, and later saves of it', async () => {
    saveInPlace('src/a.ts', '1')
    watched()
    await isSeen(saveByRename, 'src/b.ts')
    await isSeen(saveInPlace, 'src/b.ts')
  })

  it('sees files in a new directory, also those written before its watch began', async () => {
    watched()
    await isSeen(saveInPlace, 'new/deep/a.ts')
    await isSeen(saveByRename, 'new/deep/a.ts')
  })

  it('sees files in a directory that was replaced, as git checkout does', async () => {
    saveInPlace('src/a.ts', '1')
    watched()
    rmSync(join(dir, 'src'), { recursive: true })
    await until(() => saved.includes('src'))
    await isSeen(saveInPlace, 'src/a.ts')
    await isSeen(saveInPlace, 'src/a.ts')
  })

  it('ignores node_modules, dist and hidden files', async () => {
    saveInPlace('node_modules/x/index.js', '1')
    watched()
    saveInPlace('node_modules/x/index.js', '2')
    saveInPlace('.swp', '1')
    await isSeen(saveInPlace, 'a.ts')
    expect(saved.filter((file) => file !== 'a.ts')).toEqual([])
  })
})

describe('the dev loop', () => {
  const restarts = []
  const messages = []
  let restart
  beforeEach(() => {
    restarts.length = 0
    messages.length = 0
    restart = async () => {}
    saveInPlace('app/main.ts', "import { greet } from '../lib/greet.ts'\ngreet()\n")
    saveInPlace('lib/greet.ts', 'export const greet = (): void => {}\n')
    const programs = [{ main: 'app/main.ts', folders: ['app', 'lib'], processes: ['worker-1', 'worker-2'] }]
    const say = (line) => messages.push(line)
    const record = async (name) => {
      restarts.push(name)
      await restart(name)
    }
    open.push(startDevLoop({ root: dir, programs, restart: record, say }))
  })

  it('restarts the processes of a program one after the other', async () => {
    let running = 0
    restart = async () => {
      expect(++running).toBe(1)
      await Promise.resolve()
      running--
    }
    saveByRename('lib/greet.ts', 'export const greet = (): string => "hello"\n')
    await until(() => restarts.length === 2)
    expect(restarts).toEqual(['worker-1', 'worker-2'])
    expect(messages[0]).toBe('lib/greet.ts was saved: restarting worker-1.')
  })

  it.each([
    ['a syntax error', 'lib/greet.ts', 'export const = 1\n', 'SyntaxError'],
    ['a syntax error in the main file', 'app/main.ts', 'const = 1\n', 'SyntaxError'],
    ['a missing export', 'lib/greet.ts', 'export const other = 1\n', "does not provide an export named 'greet'"],
    ['a missing file', 'app/main.ts', "import '../lib/nowhere.ts'\n", 'Cannot find module'],
  ])('keeps the running processes through %s, and prints it once', async (_, file, broken, error) => {
    saveInPlace(file, broken)
    await until(() => messages.length === 1)
    expect(messages[0]).toContain(error)
    expect(messages[0]).toContain(
      `${file} was saved, but app/main.ts cannot be loaded. Still running the last version.`,
    )
    expect(restarts).toEqual([])

    saveInPlace(file, file === 'app/main.ts' ? 'export {}\n' : 'export const greet = (): void => {}\n')
    await until(() => restarts.length === 2)
    expect(messages.filter((message) => message.includes(error))).toHaveLength(1)
  })

  it('keeps the other processes if the first one fails to start, and tries again on the next save', async () => {
    restart = () => Promise.reject(new Error('worker-1 exited before it was ready.'))
    saveInPlace('app/main.ts', "throw new Error('no catalogue')\n")
    await until(() => messages.length === 2)
    expect(messages[1]).toBe('worker-1 exited before it was ready.\nworker-1 will be restarted on the next save.')
    expect(restarts).toEqual(['worker-1'])

    restart = async () => {}
    saveInPlace('app/main.ts', 'export {}\n')
    await until(() => restarts.length === 3)
    expect(restarts).toEqual(['worker-1', 'worker-1', 'worker-2'])
  })

  it('ignores tests', async () => {
    saveInPlace('app/main.test.ts', 'const = 1\n')
    saveInPlace('lib/greet.ts', 'export const greet = (): void => {}\n')
    await until(() => restarts.length === 2)
    expect(messages.join('\n')).not.toContain('main.test.ts')
  })
})

describe('loading a program without running it', () => {
  it('evaluates its imports and stops before its body', async () => {
    saveInPlace('lib.ts', "console.log('imported')\n")
    saveInPlace('main.ts', "console.log('started')\nimport './lib.ts'\n")
    const loadOnly = join(import.meta.dirname, 'load-only.mjs')
    const { code, stdout } = await run(process.execPath, ['--import', loadOnly, join(dir, 'main.ts')], { cwd: dir })
    expect(stdout).toBe('imported\n')
    expect(code).toBe(0)
  })
})
