// `npm run new`, in a copy of the packages that it changes.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { addTask } from './new-task.mjs'
import { run } from './system/programs.mjs'

const root = join(import.meta.dirname, '..')
const modules = join(root, 'node_modules')
let copy

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'bullpen-new-'))
  const filter = (path) => !/\/(node_modules|dist|\.turbo)$/.test(path)
  for (const folder of ['packages', 'apps']) cpSync(join(root, folder), join(copy, folder), { recursive: true, filter })
  cpSync(join(root, 'tsconfig.json'), join(copy, 'tsconfig.json'))
  // All installed packages, except that the links to workspaces lead to the copy.
  mkdirSync(join(copy, 'node_modules'))
  for (const name of readdirSync(modules)) {
    if (name === '@bullpen')
      cpSync(join(modules, name), join(copy, 'node_modules', name), { recursive: true, verbatimSymlinks: true })
    else if (!name.startsWith('.')) symlinkSync(join(modules, name), join(copy, 'node_modules', name))
  }
})
afterAll(() => rmSync(copy, { recursive: true, force: true }))

it('a new task compiles, and its test passes', async () => {
  const { files, test } = addTask({ root: copy, name: 'email.welcome-back' })
  expect(files.map((file) => file.slice(copy.length + 1))).toEqual([
    'packages/tasks/src/email-welcome-back.ts',
    'apps/worker/src/handlers/email-welcome-back.ts',
    'apps/worker/src/handlers/email-welcome-back.test.ts',
    'packages/tasks/src/index.ts',
    'apps/worker/src/handlers/index.ts',
  ])
  writeFileSync(join(copy, 'tsconfig.new.json'), JSON.stringify({ extends: './tsconfig.json', include: [], files }))
  const tsc = await run(process.execPath, [join(modules, 'typescript/bin/tsc'), '-p', 'tsconfig.new.json'], {
    cwd: copy,
  })
  expect(tsc.stdout).toBe('')
  expect(tsc.code).toBe(0)
  const vitest = await run(process.execPath, [join(modules, 'vitest/vitest.mjs'), 'run', test], { cwd: copy })
  expect(vitest.stdout).toContain('1 passed')
  expect(vitest.code).toBe(0)
}, 60_000)

it('an existing task is refused, and nothing changes', () => {
  const catalogue = () => readFileSync(join(copy, 'packages/tasks/src/index.ts'), 'utf8')
  const before = catalogue()
  expect(() => addTask({ root: copy, name: 'math.factorial' })).toThrow('math.factorial already exists')
  expect(catalogue()).toBe(before)
})

it.each(['email', 'Email.welcome', 'email..welcome', 'email.wel_come', '../x.y', 'email.', '1.a', ''])(
  'the name %j is refused',
  (name) => expect(() => addTask({ root: copy, name })).toThrow('expected lower-case words with at least one dot'),
)
