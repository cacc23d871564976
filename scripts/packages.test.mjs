// The published packages, installed into an empty project elsewhere: the one of the tutorial.
import { spawn, spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { publishedManifest } from './build-package.mjs'
import { run } from './system/programs.mjs'

const root = join(import.meta.dirname, '..')
const KEY = 'a-key-of-the-test-project'

/** Plain JavaScript, because Node 20 does not strip types. */
const PRODUCER = `
import { createClient, http } from '@bullpen/client'
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'
const task = defineTask({ name: 'a.b', queue: 'a', input: z.object({}), output: z.void() })
const client = createClient({ transport: http('http://127.0.0.1:1', 'k'), retryFor: '1ms' })
await client.enqueue(task, {}).catch(({ code }) => console.log(code))
`

const PROJECT = {
  'producer.mjs': PRODUCER,
  'package.json': JSON.stringify({ name: 'elsewhere', private: true, type: 'module' }),
  'tsconfig.json': JSON.stringify({
    compilerOptions: { ...tutorialOptions(), typeRoots: [join(root, 'node_modules/@types')] },
    include: ['*.ts', 'readmes/*.ts'],
  }),
  ...filesIn(join(root, 'docs/tutorial')),
}

/** The code of all blocks of a page that are in the given language, except quoted programs, which have tests of their own. */
function fences(page, language) {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/<!-- file: .*? -->\n\n```[\s\S]*?```/g, '')
  return [...text.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, code]) => code)
}

/** The compiler options that the tutorial tells its reader to use. */
function tutorialOptions() {
  return JSON.parse(fences('docs/tutorial.md', 'json')[0]).compilerOptions
}

/** The fragments of the page on resources and middleware, with the declarations that they assume. */
const RESOURCE_FRAGMENTS = `
import { defineCatalogue, defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { createWorker, type Middleware } from '@bullpen/worker'
import { z } from 'zod'
interface Resources { readonly prefix: string }
const task = defineTask({ name: 'a.b', queue: 'a', input: z.object({}), output: z.void(), isolation: 'process' })
const catalogue = defineCatalogue(task)
const handle = (_: TaskContext<typeof task, Resources>) => {}
const handlers = { 'a.b': defineHandler(task, import.meta.url, handle) }
declare function reportError(error: unknown, fields: object): void
${fences('docs/how-to/resources-and-middleware.md', 'ts').join('')}
export { reported, worker }
`

/** Settings with which the tutorial's programs share a machine and a Redis with other tests. */
const SETTINGS = {
  BULLPEN_NAMESPACE: 'elsewhere',
  BULLPEN_API_KEYS: KEY,
  BULLPEN_API_PORT: '0',
  BULLPEN_API_METRICS_PORT: '0',
  BULLPEN_WORKER_PORT: '0',
}

/** The examples of the test kit's README, as tests of the same project. */
const examples = fences('packages/testkit/README.md', 'ts').map((code, i) => [`example-${i + 1}.test.ts`, code])

/** The programs of the other READMEs, which share the catalogue of the contract's README. */
const README_PROGRAMS = {
  'catalogue.ts': fences('packages/contract/README.md', 'ts')[0],
  ...Object.fromEntries(
    ['api', 'client', 'config', 'pipeline', 'worker'].map((name) => [
      `${name}.ts`,
      fences(`packages/${name}/README.md`, 'ts')[0],
    ]),
  ),
  'resources.ts': RESOURCE_FRAGMENTS,
}

const project = mkdtempSync(join(tmpdir(), 'bullpen-elsewhere-'))
/** The programs of the project start several times. */
const COMPILED = { NODE_COMPILE_CACHE: join(project, 'compile-cache') }
const processes = []

function filesIn(folder) {
  const names = globSync('*.ts', { cwd: folder })
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

async function must(command, args, options) {
  const { code, stdout, stderr } = await run(command, args, options)
  if (code !== 0) throw new Error(`${[command, ...args].join(' ')} exited with ${code}:\n${stdout}${stderr}`)
  return stdout
}

/** Starts a program of the project. `line` resolves with the first line on stdout that matches. */
function start(file, variables = {}) {
  const env = { ...COMPILED, PATH: process.env.PATH, REDIS_URL: inject('redisUrl'), ...SETTINGS, ...variables }
  const child = spawn(process.execPath, [file], { cwd: project, env, stdio: ['ignore', 'pipe', 'inherit'] })
  processes.push(child)
  const exit = new Promise((resolve) => child.once('exit', resolve))
  const lines = createInterface({ input: child.stdout })
  const line = (matches) =>
    new Promise((resolve, reject) => {
      lines.on('line', (text) => matches(text) && resolve(text))
      exit.then((code) => reject(new Error(`${file} exited with ${code}`)))
    })
  const end = () => {
    child.kill('SIGTERM')
    return exit
  }
  return { line, end, exit }
}

const isNode20 = (file) => spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout?.startsWith('v20.') ?? false

/** Returns a Node 20: one on PATH, or else the one that npm installs beside the packages of this repository. */
async function node20() {
  const onPath = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node'))
  const folder = join(root, 'node_modules/.cache/node-20')
  const installed = join(folder, 'node_modules/.bin/node')
  const found = [...onPath, installed].find(isNode20)
  if (found !== undefined) return found
  mkdirSync(folder, { recursive: true })
  await must('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', 'node@20'])
  if (!isNode20(installed)) throw new Error(`npm installed node@20 into ${folder}, but ${installed} is no Node 20`)
  return installed
}

beforeAll(async () => {
  const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1' }
  await must(join(root, 'node_modules/.bin/turbo'), ['run', 'build', '--output-logs=errors-only'], { cwd: root, env })
  const built = globSync('packages/*/dist/package.json', { cwd: root }).map((file) => join(root, dirname(file)))
  mkdirSync(join(project, 'tarballs'))
  const packed = await must('npm', ['pack', '--json', '--pack-destination', join(project, 'tarballs'), ...built])
  const tarballs = Object.values(JSON.parse(packed)).map(({ filename }) => `./tarballs/${filename}`)
  for (const [file, text] of [...Object.entries(PROJECT), ...examples]) writeFileSync(join(project, file), text)
  mkdirSync(join(project, 'readmes'))
  for (const [file, text] of Object.entries(README_PROGRAMS)) writeFileSync(join(project, 'readmes', file), text)
  await must('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...tarballs], { cwd: project })
})

afterAll(() => {
  for (const child of processes) child.kill('SIGKILL')
  rmSync(project, { recursive: true, force: true })
})

it('a published manifest points at compiled files and has no workspace fields', () => {
  const source = {
    name: '@bullpen/x',
    private: true,
    scripts: { build: 'y' },
    devDependencies: { z: '1' },
    dependencies: { a: '1' },
    exports: { '.': './src/index.ts', './more': './src/more/index.ts' },
    bin: { x: './src/main.ts' },
  }
  expect(publishedManifest(source)).toEqual({
    name: '@bullpen/x',
    dependencies: { a: '1' },
    exports: {
      '.': { types: './index.d.ts', default: './index.js' },
      './more': { types: './more/index.d.ts', default: './more/index.js' },
    },
    bin: { x: './main.js' },
  })
})

it('a private package is not built', async () => {
  const { code, stderr } = await run(process.execPath, [join(root, 'scripts/build-package.mjs')], {
    cwd: join(root, 'packages/tasks'),
  })
  expect(stderr).toBe('bullpen: @bullpen/tasks is private; only published packages are built\n')
  expect(code).toBe(1)
})

it('every published package has a README and a license', () => {
  const folders = globSync('node_modules/@bullpen/*', { cwd: project })
  expect(folders.length).toBeGreaterThan(5)
  for (const folder of folders) {
    const files = globSync('*', { cwd: join(project, folder) })
    expect(files, folder).toEqual(expect.arrayContaining(['README.md', 'LICENSE']))
  }
})

it('no sources, no tests and nothing of the example are published', () => {
  const published = globSync('node_modules/@bullpen/*/**/*', { cwd: project })
  expect(published.length).toBeGreaterThan(0)
  expect(published.filter((file) => /\.(test|fixture)\.|(?<!\.d)\.ts$/.test(file))).toEqual([])
  for (const file of globSync('node_modules/@bullpen/*/package.json', { cwd: project })) {
    expect(readFileSync(join(project, file), 'utf8')).not.toContain('src/')
    expect(readFileSync(join(project, file), 'utf8')).not.toContain('bullpen/tasks":')
  }
})

it('a strict project compiles against the published types', async () => {
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { code, stdout } = await run(process.execPath, [tsc, '-p', project], { cwd: project })
  expect(stdout).toBe('')
  expect(code).toBe(0)
})

it('the tests of the tutorial and of the test kit’s README pass', async () => {
  const files = ['welcome.test.ts', ...examples.map(([file]) => file)]
  const { code, stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', ...files], { cwd: project })
  expect(stdout).toMatch(/^# fail 0$/m)
  expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(files.length)
  expect(code).toBe(0)
})

it('the programs of the READMEs work together', async () => {
  const ready = (text) => JSON.parse(text).msg?.endsWith('ready')
  const variables = { BULLPEN_NAMESPACE: 'readmes' }
  const api = start('readmes/api.ts', variables)
  const worker = start('readmes/worker.ts', variables)
  const [line] = await Promise.all([api.line(ready), worker.line(ready)])
  const client = README_PROGRAMS['client.ts'].replace('http://127.0.0.1:8080', JSON.parse(line).url)
  writeFileSync(join(project, 'readmes/client.ts'), `${client}\nconsole.log(n)\n`)
  const env = { ...process.env, BULLPEN_KEY: KEY }
  expect(await must(process.execPath, ['readmes/client.ts'], { cwd: project, env })).toBe('42\n')
  expect(await Promise.all([api.end(), worker.end()])).toEqual([0, 0])
})

it('a producer runs on Node 20: client and contract need nothing newer', async () => {
  const { code, stdout, stderr } = await run(await node20(), ['producer.mjs'], { cwd: project })
  expect(stderr).toBe('')
  expect(stdout).toBe('unreachable\n')
  expect(code).toBe(0)
})

it('the command line is installed as a program', async () => {
  const { code, stdout } = await run(join(project, 'node_modules/.bin/bullpen'), ['--version'], { cwd: project })
  const { version } = JSON.parse(readFileSync(join(project, 'node_modules/@bullpen/cli/package.json'), 'utf8'))
  expect({ code, version: stdout.trim() }).toEqual({ code: 0, version })
})

it('a task is accepted over HTTP and run, and both programs exit with 0 on SIGTERM', async () => {
  const api = start('api.ts')
  const worker = start('worker.ts')
  const { url } = JSON.parse(await api.line((text) => text.includes('"url"')))
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ task: 'email.welcome', input: { to: 'ann@example.com', name: 'Ann' } })
  const accepted = await fetch(`${url}/v1/tasks`, { method: 'POST', headers, body })
  expect(accepted.status).toBe(202)
  const ended = await fetch(`${url}${accepted.headers.get('location')}?wait=20`, { headers })
  expect(await ended.json()).toMatchObject({ status: 'completed', output: { greeting: 'Hello, Ann' } })
  expect({ worker: await worker.end(), api: await api.end() }).toEqual({ worker: 0, api: 0 })
})

it('two workers run on one machine', async () => {
  const workers = [start('worker.ts'), start('worker.ts')]
  await Promise.all(workers.map((worker) => worker.line((text) => text.includes('worker ready'))))
  expect(await Promise.all(workers.map((worker) => worker.end()))).toEqual([0, 0])
})

it.each([
  ['worker.ts', 'BULLPEN_WORKER_PORT'],
  ['api.ts', 'BULLPEN_API_PORT'],
])('%s exits with a code other than 0 if its port is taken', async (file, variable) => {
  const server = createServer()
  const port = await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server.address().port))
  })
  try {
    expect(await start(file, { [variable]: String(port) }).exit).toBeGreaterThan(0)
  } finally {
    server.close()
  }
})
