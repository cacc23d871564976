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
