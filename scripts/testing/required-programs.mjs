// Finds a program that only tests need, or installs it with the system's package manager if the user has agreed.
import { hasConsent } from '../system/consent.mjs'
import { findPackageManager } from '../system/package-manager.mjs'
import { findProgram, run } from '../system/programs.mjs'
import { UserError } from '../system/user-error.mjs'

/** The names differ by system. With the arguments of `check`, a program that works exits with 0. */
const PROGRAMS = {
  chromium: {
    product: 'Chromium',
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    check: ['--version'],
    consent: 'INSTALL_CHROMIUM',
  },
  python: {
    product: 'Python 3',
    names: ['python3'],
    check: ['-c', 'import http.client, urllib.request'], // the smallest installations lack modules
    consent: 'INSTALL_PYTHON',
  },
}

const EITHER = new Intl.ListFormat('en-GB', { type: 'disjunction' })

/** Everything outside this module that is used. Tests replace it. */
const machine = {
  env: process.env,
  say: (line) => console.error(line),
  isRoot: process.getuid?.() === 0,
  find: findProgram,
  works: async (program, args) => (await run(program, args)).code === 0,
  run: (command, args) =>
    run(command, args, { stdio: ['ignore', 2, 2], env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }),
}

/** Installs what is missing of these programs and allowed by the user, before test files need it at the same time. */
export async function installPrograms() {
  for (const program of Object.keys(PROGRAMS)) await resolveProgram(program).catch(() => {})
}

/**
 * Returns the full path of a program.
 * @param {keyof typeof PROGRAMS} program
 * @param {Partial<typeof machine>} [options]
 * @returns {Promise<string>}
 * @throws UserError that says what to install
 */
export async function resolveProgram(program, options = {}) {
  const world = { ...machine, ...options }
  const { product, names, consent } = PROGRAMS[program]
  const found = await findWorking(program, world)
  if (found !== undefined) return found
  const { env, isRoot } = world
  const manager = findPackageManager({ find: (name) => world.find(name, env), isRoot, product: program })
  if (manager !== undefined && hasConsent(consent, env)) {
    await install(product, manager, world)
    const installed = await findWorking(program, world)
    if (installed !== undefined) return installed
    world.say(`${manager.program} did not provide a working ${product}.`)
  }
  const lines =
    manager === undefined
      ? [`  install ${product}`]
      : [`  ${`install ${product}:`.padEnd(31)} ${manager.line}`, `  let this script install it:     set ${consent}=1`]
  throw new UserError(
    [`${product} is needed, but no working ${EITHER.format(names)} is on PATH. Do one of these:`, ...lines].join('\n'),
  )
}

async function findWorking(program, { env, find, works }) {
  const { names, check } = PROGRAMS[program]
  for (const name of names) {
    const path = find(name, env)
    if (path !== undefined && (await works(path, check))) return path
  }
  return undefined
}

async function install(product, manager, { run: execute, say }) {
  say(`Installing ${product} with \`${manager.line}\`.`)
  if (manager.refresh) await execute(manager.refresh[0], manager.refresh.slice(1))
  for (const [command, ...args] of manager.installs) if ((await execute(command, args)).code === 0) return
}
