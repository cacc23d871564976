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

it('new tasks compile, and their tests pass, whatever their names', async () => {
  const added = ['email.welcome-back', 'sendWelcome', 'import', 'constructor'].map((name) =>
    addTask({ root: copy, name }),
  )
  expect(added.map(({ files }) => files.map((path) => path.slice(copy.length + 1)).slice(0, 3))).toEqual(
    ['email-welcome-back', 'send-welcome', 'import', 'constructor'].map((file) => [
      `packages/tasks/src/${file}.ts`,
      `apps/worker/src/handlers/${file}.ts`,
      `apps/worker/src/handlers/${file}.test.ts`,
    ]),
  )
  const files = added.flatMap((each) => each.files)
  writeFileSync(join(copy, 'tsconfig.new.json'), JSON.stringify({ extends: './tsconfig.json', include: [], files }))
  const tsc = await run(process.execPath, [join(modules, 'typescript/bin/tsc'), '-p', 'tsconfig.new.json'], {
    cwd: copy,
  })
  expect(tsc.stdout).toBe('')
  expect(tsc.code).toBe(0)
  const tests = added.map(({ test }) => test)
  const vitest = await run(process.execPath, [join(modules, 'vitest/vitest.mjs'), 'run', ...tests], { cwd: copy })
  expect(vitest.stdout).toContain('4 passed')
  expect(vitest.code).toBe(0)
})

it('an existing task is refused, and nothing changes', () => {
  const catalogue = () => readFileSync(join(copy, 'packages/tasks/src/index.ts'), 'utf8')
  const before = catalogue()
  expect(() => addTask({ root: copy, name: 'math.factorial' })).toThrow('math.factorial already exists')
  expect(catalogue()).toBe(before)
})

it.each(['../x.y', '_x', '__proto__', 'a b', "a'b", '1.a', 'a'.repeat(101), ''])('the name %j is refused', (name) =>
  expect(() => addTask({ root: copy, name })).toThrow('expected a letter followed by letters'),
)
