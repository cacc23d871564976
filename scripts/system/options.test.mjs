// The command lines of the scripts.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { run } from './programs.mjs'

const root = join(import.meta.dirname, '../..')
const script = (...args) => run(process.execPath, args, { cwd: root, env: { PATH: '/nowhere' } })

it.each([
  ['npm start', 'start'],
  ['npm run dev', 'dev'],
  ['npm run demo', 'demo'],
  ['npm test', 'test'],
  ['npm run test:next', 'test-next'],
  ['npm run bench', 'bench'],
  ['npm run drill', 'drill'],
  ['npm run new', 'new'],
  ['npm run ci', 'ci'],
  ['npm run lock', 'complete-lock'],
])('%s prints its usage with --help and does nothing else', async (command, file) => {
  const { code, stdout, stderr } = await script(`scripts/${file}.mjs`, '--help')
  expect(stdout).toMatch(new RegExp(`^usage: ${command}\\b.*\\n\\n[A-Z]`))
  expect(stderr).toBe('')
  expect(code).toBe(0)
})

it('an unknown option is answered with the usage', async () => {
  const { code, stderr } = await script('scripts/start.mjs', '--fersh')
  expect(stderr).toBe(
    "bullpen: Unknown option '--fersh'\nusage: npm start -- [--fresh] [--observe] [--install-redis]\n",
  )
  expect(code).toBe(1)
})

it.each([
  ['scripts/demo.mjs', ['--mode', 'serial', '--mode', 'none'], '--mode', 1],
  ['tools/bench/src/main.ts', ['enqueue', '--pairs', '1', '--pairs', '0'], '--pairs', 2],
  ['tools/drill/src/main.ts', ['kill', '--seed', '1', '--seed', 'none'], '--seed', 2],
])('%s refuses a second value of an option, and says which one', async (file, args, option, expected) => {
  const env = { PATH: '/nowhere', REDIS_URL: 'redis://127.0.0.1:1' }
  const { code, stdout, stderr } = await run(process.execPath, [file, ...args], { cwd: root, env })
  expect(stderr).toMatch(new RegExp(`^\\w+: ${option} is specified twice\nusage: `))
  expect([code, stdout]).toEqual([expected, ''])
})
