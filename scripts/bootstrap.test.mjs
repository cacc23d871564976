// The bootstrap, in a project of its own with an npm that only writes down what it was asked.
import { spawn } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { run } from './programs.mjs'

let project
const put = (path, text) => {
  mkdirSync(dirname(join(project, path)), { recursive: true })
  writeFileSync(join(project, path), text)
}
const asked = () => {
  const file = join(project, 'npm.log')
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}
const lock = (version) => JSON.stringify({ packages: { '': {}, 'node_modules/zod': { version } } })
/** An npm that runs `body` in the project; PATH holds nothing else but the shell's own tools. */
const npm = (body) => {
  put('bin/npm', `#!/bin/sh\necho "$@" >> npm.log\n${body}\n`)
  chmodSync(join(project, 'bin/npm'), 0o755)
}
const installs = 'mkdir -p node_modules && cp package-lock.json node_modules/.package-lock.json'
const options = () => ({ cwd: project, env: { ...process.env, PATH: `${join(project, 'bin')}:/usr/bin:/bin` } })
const bootstrap = (...args) => run(process.execPath, ['scripts/bootstrap.mjs', ...args], options())

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'bullpen-bootstrap-'))
  put('package-lock.json', lock('4.0.0'))
  put('scripts/start.mjs', 'console.log(JSON.stringify([process.argv.slice(2), process.env.PATH]))\nprocess.exit(7)')
  for (const file of ['bootstrap.mjs', 'foreground.mjs']) {
    copyFileSync(join(import.meta.dirname, file), join(project, 'scripts', file))
  }
  npm(installs)
})
afterEach(() => rmSync(project, { recursive: true, force: true }))

it('installs what the lock file says, once, and says so', async () => {
  const { stderr } = await bootstrap('start')
  expect(stderr).toMatch(/installing packages with npm ci, since nothing is installed yet …\n.*installed in \d+ s\n/)
  expect((await bootstrap('start')).stderr).toBe('')
  expect(asked()).toEqual(['ci --no-audit --no-fund --loglevel=error'])
})

it('brings an older installation up to the lock file without deleting it', async () => {
  await bootstrap('start')
  put('package-lock.json', lock('4.1.0'))
  expect((await bootstrap('start')).stderr).toContain('with npm install, since zod is not at 4.1.0')
  expect(asked()[1]).toBe('install --no-save --no-audit --no-fund --loglevel=error')
})

it('does without optional packages of other platforms', async () => {
  put(
    'package-lock.json',
    JSON.stringify({ packages: { 'node_modules/x-win32': { version: '1.0.0', optional: true } } }),
  )
  put('node_modules/.package-lock.json', JSON.stringify({ packages: {} }))
  expect((await bootstrap('start')).stderr).toBe('')
})

it('mends a lock file that does not fit, and says so', async () => {
  npm(`case "$1" in ci) echo 'npm error code EUSAGE' >&2; exit 1;; esac; ${installs}`)
  expect((await bootstrap('start')).stderr).toContain('package-lock.json does not fit the package.json files')
  expect(asked().map((line) => line.split(' ')[0])).toEqual(['ci', 'install'])
})

it('shows what npm said when it fails, and that there may be no network', async () => {
  npm("echo 'npm error code ENOTFOUND' >&2; exit 1")
  const { code, stderr, stdout } = await bootstrap('start')
  expect(stderr).toContain(
    'npm could not install the packages:\nnpm error code ENOTFOUND\nThe package registry was not',
  )
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
})

it('says where npm comes from when there is none', async () => {
  rmSync(join(project, 'bin/npm'))
  const env = { PATH: join(project, 'bin') }
  const { code, stderr } = await run(process.execPath, ['scripts/bootstrap.mjs', 'start'], { cwd: project, env })
  expect(code).toBe(1)
  expect(stderr).toContain('npm is not on PATH; it comes with Node')
})

it('passes arguments and exit code on, with the packages’ programs first on PATH', async () => {
  const { code, stdout } = await bootstrap('start', '--fresh', 'a b')
  expect(code).toBe(7)
  const [args, path] = JSON.parse(stdout)
  expect(args).toEqual(['--fresh', 'a b'])
  expect(path).toMatch(/^[^:]*node_modules\/\.bin:/)
})

it('lists the commands for one that it does not know', async () => {
  const { code, stderr } = await bootstrap('strat')
  expect(code).toBe(1)
  expect(stderr).toContain('there is no command "strat". There are:\n  start ')
  expect(asked()).toEqual([])
})

it.each(['SIGTERM', 'SIGINT'])('passes %s on and waits for the end', async (signal) => {
  put(
    'scripts/start.mjs',
    `process.on('${signal}', () => { console.log('drained'); process.exit(0) }); setInterval(() => {}, 1000); console.log('up')`,
  )
  const child = spawn(process.execPath, ['scripts/bootstrap.mjs', 'start'], {
    ...options(),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    if (chunk.includes('up')) child.kill(signal)
    text += chunk
  })
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0)
  expect(text).toBe('up\ndrained\n')
})
