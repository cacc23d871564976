// Tests that only terminals get colours, and NO_COLOR turns them off.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Capture, terminal } from '../capture.fixture.ts'
import { FAKE_KEY, fakeApi, ID, view } from '../fake-api.fixture.ts'
import { bullpen } from '../program.ts'

const GREEN = '\u001b[32mcompleted\u001b[39m'

beforeEach(() => {
  for (const name of ['FORCE_COLOR', 'NO_COLOR', 'NODE_DISABLE_COLORS', 'CI']) vi.stubEnv(name, undefined)
  vi.stubEnv('TERM', 'xterm-256color')
})
afterEach(() => vi.unstubAllEnvs())

async function shown(stream: Capture, ...args: string[]): Promise<string> {
  await using api = await fakeApi({ [`GET /v1/tasks/${ID}`]: [200, view()] })
  const env = { BULLPEN_API: api.url, BULLPEN_KEY: FAKE_KEY }
  const streams = { stdin: process.stdin, stdout: stream, stderr: new Capture() }
  await bullpen({ argv: ['show', ID, ...args], env, ...streams, events: process, now: Date.now })
  return stream.text
}

test('text on a terminal is coloured, JSON is not', async () => {
  expect(await shown(terminal())).toContain(GREEN)
  expect(await shown(terminal(), '--json')).not.toContain('\u001b')
})

test('NO_COLOR turns colours off, and a pipe never gets any', async () => {
  expect(await shown(new Capture())).not.toContain('\u001b')
  vi.stubEnv('NO_COLOR', '1')
  expect(await shown(terminal())).not.toContain('\u001b')
})
