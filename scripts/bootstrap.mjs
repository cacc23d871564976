// Runs a command of scripts/ on any machine with Node >= 18 and npm: installs what is missing, then uses Node >= 24.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { foreground } from './foreground.mjs'

const COMMANDS = {
  start: 'the platform in one terminal: Redis, the API, two workers',
  dev: 'the same, and what is saved is restarted',
  demo: 'MD5 of every file below a directory, over the HTTP API',
  test: 'every test there is',
  bench: 'the benchmarks',
  drill: 'the reliability drills: processes killed, restarted, cut off; what was lost',
  ci: 'everything that CI checks',
  new: 'a new task: definition, handler, test',
}
const OLDEST_TO_BOOT = 18
const OLDEST_TO_RUN = 24

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const major = Number.parseInt(process.versions.node, 10)
const say = (line) => console.error(`bullpen: ${line}`)

function fail(message) {
  say(message)
  process.exit(1)
}

/** PATH with the packages' own programs first, `node` among them once it is installed. */
const packagesFirst = () => [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter)

const readJson = (...path) => JSON.parse(readFileSync(join(root, ...path), 'utf8'))

/** Why the installed packages are not those of the lock file; undefined when they are. */
function whatIsMissing() {
  if (!existsSync(join(root, 'node_modules/.package-lock.json'))) return 'nothing is installed yet'
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
 * A native package for this very platform that npm left out, as it does without a word when this Node is older than
 * the package wants; undefined when all are there.
 */
function whatWasLeftOut() {
  const libc = process.report?.getReport().header.glibcVersionRuntime ? 'glibc' : 'musl'
  const fits = (values, value) => values?.includes(value)
  return Object.entries(readJson('package-lock.json').packages)
    .filter(([, { os, cpu }]) => fits(os, process.platform) && fits(cpu, process.arch))
    .filter((entry) => entry[1].libc === undefined || fits(entry[1].libc, libc))
    .map(([path]) => path)
    .find((path) => !existsSync(join(root, path)))
}

/** npm, quietly: what it says is returned, to be shown when it fails. It runs on the first Node on PATH. */
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
      fail(error.code === 'ENOENT' ? 'npm is not on PATH; it comes with Node: https://nodejs.org' : error.message)
    })
    child.once('close', (code) => resolve({ ok: code === 0, text }))
  })
}

async function install() {
  const missing = whatIsMissing()
  if (missing === undefined) return
  const start = Date.now()
  // `npm ci` begins by deleting what is there, also under a platform that runs: it is for the first time.
  const first = existsSync(join(root, 'node_modules')) ? ['install', '--no-save'] : ['ci']
  say(`installing packages with npm ${first[0]}, since ${missing} …`)
  let result = await npm(...first)
  if (!result.ok && /EUSAGE|in sync|ERESOLVE/.test(result.text)) {
    say('package-lock.json does not fit the package.json files: using npm install, which mends the lock file …')
    result = await npm('install')
  }
  if (result.ok && major < OLDEST_TO_RUN && whatWasLeftOut() !== undefined) {
    say(`adding what npm leaves out on Node ${process.versions.node} …`)
    result = await npm('install', '--no-save') // on the Node that has just been installed
  }
  if (!result.ok) {
    const offline = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT/.test(result.text)
    const hint = offline ? '\nThe package registry was not reached: is there a network (npm ping)?' : ''
    fail(`npm could not install the packages:\n${result.text.trim()}${hint}`)
  }
  say(`installed in ${Math.round((Date.now() - start) / 1000)} s`)
}

/** A Node that runs TypeScript as it stands: this one, or the one that npm installed beside the packages. */
function findNode() {
  if (major >= OLDEST_TO_RUN) return process.execPath
  const pinned = join(root, 'node_modules/.bin/node')
  if (existsSync(pinned)) return pinned
  return fail(
    `this is Node ${process.versions.node}, and Bullpen runs on ${OLDEST_TO_RUN} or later. The optional package "node" ` +
      `should have brought it, and did not. Try: npm rebuild node. Or install Node ${OLDEST_TO_RUN}: https://nodejs.org`,
  )
}

function runScript(node, command, args) {
  const env = { ...process.env, PATH: packagesFirst(), INIT_CWD: process.env.INIT_CWD ?? process.cwd() }
  return foreground(node, [join(root, `scripts/${command}.mjs`), ...args], { cwd: root, env })
}

const [command, ...args] = process.argv.slice(2)
if (!(major >= OLDEST_TO_BOOT)) {
  fail(`this is Node ${process.versions.node}, and ${OLDEST_TO_BOOT} or later is needed to begin: https://nodejs.org`)
}
if (!Object.hasOwn(COMMANDS, command ?? '')) {
  const list = Object.entries(COMMANDS).map(([name, what]) => `  ${name.padEnd(8)}${what}`)
  const problem = command === undefined ? 'say what to run' : `there is no command "${command}"`
  fail(`${problem}. There are:\n${list.join('\n')}`)
}
await install()
process.exit(await runScript(findNode(), command, args))
