// Runs a command of scripts/ on any machine with Node 18 or later and npm. It installs missing packages, including Node 24.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { foreground } from './system/foreground.mjs'

const COMMANDS = {
  start: 'starts Redis, the API and two workers',
  dev: 'does the same, and restarts programs when their files are saved',
  demo: 'prints the MD5 of every file below a directory',
  test: 'runs the tests',
  'test-next': 'tests against the newest BullMQ in the registry',
  bench: 'runs the benchmarks',
  drill: 'runs the reliability drills',
  ci: 'runs everything that CI checks',
  new: 'writes the files of a new task',
}
const BOOTSTRAP_NODE = 18 // the oldest version that this file runs on
const PROJECT_NODE = 24 // the oldest version that Bullpen runs on

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const major = Number.parseInt(process.versions.node, 10)
const say = (line) => console.error(`bullpen: ${line}`)

function fail(message) {
  say(message)
  process.exit(1)
}

/** Returns PATH with node_modules/.bin first, which contains `node` once it is installed. */
const packagesFirst = () => [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter)

const readJson = (...path) => JSON.parse(readFileSync(join(root, ...path), 'utf8'))

/** Returns how the installed packages differ from the lock file, or undefined if they do not. */
function installationGap() {
  if (!existsSync(join(root, 'node_modules/.package-lock.json'))) return 'nothing is installed'
  const wanted = readJson('package-lock.json').packages
  const installed = readJson('node_modules/.package-lock.json').packages
  for (const [path, { version, optional, link }] of Object.entries(wanted)) {
    if (!path.startsWith('node_modules/') || link) continue
    const there = installed[path]
    if (there === undefined ? !optional : there.version !== version) {
      return `${path.slice('node_modules/'.length)} is not at ${version}`
    }
  }
  return undefined
}

/**
 * Returns an optional native package for this platform that npm skipped, or undefined if there is none. npm silently skips a
 * package if this Node is older than the package requires.
 */
function skippedNativePackage() {
  const libc = process.report?.getReport().header.glibcVersionRuntime ? 'glibc' : 'musl'
  const fits = (values, value) => values?.includes(value)
  return Object.entries(readJson('package-lock.json').packages)
    .filter(([, { os, cpu }]) => fits(os, process.platform) && fits(cpu, process.arch))
    .filter((entry) => entry[1].libc === undefined || fits(entry[1].libc, libc))
    .map(([path]) => path)
    .find((path) => !existsSync(join(root, path)))
}

/** Runs npm and returns its stderr, which is shown if npm fails. */
function npm(...args) {
  return new Promise((resolve) => {
    const child = spawn('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, PATH: packagesFirst() },
    })
    let text = ''
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    child.once('error', (error) => {
      fail(error.code === 'ENOENT' ? 'npm is not on PATH. It comes with Node: https://nodejs.org' : error.message)
    })
    child.once('close', (code) => resolve({ ok: code === 0, text }))
  })
}

async function install() {
  const gap = installationGap()
  if (gap === undefined) return
  const start = Date.now()
  // `npm ci` is used only for the first installation, because it deletes node_modules first and would break a running platform.
  const first = existsSync(join(root, 'node_modules')) ? ['install', '--no-save'] : ['ci']
  say(`${gap}: running npm ${first[0]}`)
  let result = await npm(...first)
  if (!result.ok && /EUSAGE|in sync|ERESOLVE/.test(result.text)) {
    say('package-lock.json does not match the package.json files: running npm install, which updates it')
    result = await npm('install')
  }
  if (result.ok && major < PROJECT_NODE && skippedNativePackage() !== undefined) {
    say(`installing the native packages that npm skipped on Node ${process.versions.node}`)
    result = await npm('install', '--no-save') // runs on the Node that was just installed
  }
  if (!result.ok) {
    const offline = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT/.test(result.text)
    const hint = offline ? '\nThe package registry cannot be reached; check the network with: npm ping' : ''
    fail(`npm could not install the packages:\n${result.text.trim()}${hint}`)
  }
  say(`packages installed in ${Math.round((Date.now() - start) / 1000)} s`)
}

/** Returns a Node that runs TypeScript: either this one or the one that npm installed. */
function findNode() {
  if (major >= PROJECT_NODE) return process.execPath
  const pinned = join(root, 'node_modules/.bin/node')
  if (existsSync(pinned)) return pinned
  return fail(
    `Bullpen needs Node ${PROJECT_NODE} or later, but this is ${process.versions.node}, and the optional package "node", which ` +
      `contains a newer one, is not installed. Try: npm rebuild node. Or install Node ${PROJECT_NODE}: https://nodejs.org`,
  )
}

function runScript(node, command, args) {
  const env = { ...process.env, PATH: packagesFirst(), INIT_CWD: process.env.INIT_CWD ?? process.cwd() }
  return foreground(node, [join(root, `scripts/${command}.mjs`), ...args], { cwd: root, env })
}

const [command, ...args] = process.argv.slice(2)
if (!(major >= BOOTSTRAP_NODE)) {
  fail(`Node ${BOOTSTRAP_NODE} or later is needed to start, but this is ${process.versions.node}: https://nodejs.org`)
}
if (!Object.hasOwn(COMMANDS, command ?? '')) {
  const list = Object.entries(COMMANDS).map(([name, what]) => `  ${name.padEnd(11)}${what}`)
  const problem = command === undefined ? 'a command is missing' : `unknown command "${command}"`
  fail(`${problem}; expected one of:\n${list.join('\n')}`)
}
await install()
process.exit(await runScript(findNode(), command, args))
