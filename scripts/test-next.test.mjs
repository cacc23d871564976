// npm run test:next without a registry. With one, it takes a minute, and runs what the other tests of this repository run.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { freePort } from './system/ports.mjs'
import { run } from './system/programs.mjs'

it('if the registry cannot be reached, it says so and leaves nothing behind', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-test-next-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const env = {
    ...process.env,
    TMPDIR: dir,
    npm_config_registry: `http://127.0.0.1:${await freePort()}`,
    npm_config_cache: join(dir, 'cache'),
  }
  const { code, stdout, stderr } = await run(process.execPath, [join(import.meta.dirname, 'test-next.mjs')], { env })
  expect(stderr).toBe(
    'bullpen: the package registry cannot be reached (ECONNREFUSED); check the network with: npm ping\n',
  )
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(readdirSync(dir).filter((name) => name.startsWith('bullpen-'))).toEqual([])
})
