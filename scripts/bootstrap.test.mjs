// The bootstrap, in a temporary project with a fake npm that records its arguments.
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
import { run } from './system/programs.mjs'

let project
const put = (path, text) => {
  mkdirSync(dirname(join(project, path)), { recursive: true })
  writeFileSync(join(project, path), text)
}
const npmCalls = () => {
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
  mkdirSync(join(project, 'scripts/system'), { recursive: true })
  for (const file of ['bootstrap.mjs', 'system/foreground.mjs']) {
    copyFileSync(join(import.meta.dirname, file), join(project, 'scripts', file))
  }
  npm(installs)
})
afterEach(() => rmSync(project, { recursive: true, force: true }))

it('the first run installs the locked packages and says so; the second run installs nothing', async () => {
  const { stderr } = await bootstrap('start')
  expect(stderr).toMatch(/nothing is installed: running npm ci\n.*packages installed in \d+ s\n/)
  expect((await bootstrap('start')).stderr).toBe('')
  expect(npmCalls()).toEqual(['ci --no-audit --no-fund --loglevel=error'])
})

it('an outdated installation is updated without being deleted', async () => {
  await bootstrap('start')
  put('package-lock.json', lock('4.1.0'))
  expect((await bootstrap('start')).stderr).toContain('zod is not at 4.1.0: running npm install')
  expect(npmCalls()[1]).toBe('install --no-save --no-audit --no-fund --loglevel=error')
})

it('optional packages of other platforms may be missing', async () => {
  put(
    'package-lock.json',
    JSON.stringify({ packages: { 'node_modules/x-win32': { version: '1.0.0', optional: true } } }),
  )
  put('node_modules/.package-lock.json', JSON.stringify({ packages: {} }))
  expect((await bootstrap('start')).stderr).toBe('')
})

it('updates a lock file that does not match, and says so', async () => {
  npm(`case "$1" in ci) echo 'npm error code EUSAGE' >&2; exit 1;; esac; ${installs}`)
  expect((await bootstrap('start')).stderr).toContain('package-lock.json does not match the package.json files')
  expect(npmCalls().map((line) => line.split(' ')[0])).toEqual(['ci', 'install'])
})

it('a failed installation shows the output of npm and a hint about the network', async () => {
  npm("echo 'npm error code ENOTFOUND' >&2; exit 1")
  const { code, stderr, stdout } = await bootstrap('start')
  expect(stderr).toContain('npm could not install the packages:\nnpm error code ENOTFOUND\nThe package registry cannot')
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
})

it('a missing npm is reported with where to get it', async () => {
  rmSync(join(project, 'bin/npm'))
  const env = { PATH: join(project, 'bin') }
  const { code, stderr } = await run(process.execPath, ['scripts/bootstrap.mjs', 'start'], { cwd: project, env })
  expect(code).toBe(1)
  expect(stderr).toContain('npm is not on PATH. It comes with Node')
})

it('arguments and exit code are passed on, with node_modules/.bin first on PATH', async () => {
  const { code, stdout } = await bootstrap('start', '--fresh', 'a b')
  expect(code).toBe(7)
  const [args, path] = JSON.parse(stdout)
  expect(args).toEqual(['--fresh', 'a b'])
  expect(path).toMatch(/^[^:]*node_modules\/\.bin:/)
})

it('an unknown command is answered with the list of commands', async () => {
  const { code, stderr } = await bootstrap('strat')
  expect(code).toBe(1)
  expect(stderr).toContain('unknown command "strat"; expected one of:\n  start ')
  expect(npmCalls()).toEqual([])
})

it.each(['SIGTERM', 'SIGINT'])('%s is passed on, and the bootstrap waits for the script to exit', async (signal) => {
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
