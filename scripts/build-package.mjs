// Builds the package in the current directory into dist/, which is published and has its own manifest.
import { copyFileSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { foreground } from './system/foreground.mjs'
import { explainAndExit, UserError } from './system/user-error.mjs'

const root = join(import.meta.dirname, '..')
const readJson = (...path) => JSON.parse(readFileSync(join(...path), 'utf8'))

/** Returns a source's compiled file: `./src/dashboards/index.ts` becomes `./dashboards/index.js`. */
const compiled = (source, extension) => source.replace(/^\.\/src\//, './').replace(/\.ts$/, extension)

/**
 * Returns the manifest as it is published, without workspace fields and with entry points that lead to compiled files.
 * @param {Record<string, any>} source
 */
export function publishedManifest({ private: _, scripts, devDependencies, exports = {}, bin, ...rest }) {
  const entries = Object.entries(exports).map(([entry, file]) => [
    entry,
    file.endsWith('.ts') ? { types: compiled(file, '.d.ts'), default: compiled(file, '.js') } : compiled(file, ''),
  ])
  const programs = bin && Object.fromEntries(Object.entries(bin).map(([name, file]) => [name, compiled(file, '.js')]))
  return { ...rest, exports: Object.fromEntries(entries), ...(bin && { bin: programs }) }
}

/** Returns the folders of the sibling packages that `manifest` depends on, directly or transitively. */
function siblings({ dependencies = {} }, folders) {
  return Object.keys(dependencies)
    .filter((name) => folders.has(name))
    .flatMap((name) => [folders.get(name), ...siblings(readJson(folders.get(name), 'package.json'), folders)])
}

/**
 * Returns the compiler's `paths` to the declarations of the sibling packages, which have already been built. Without these paths,
 * the compiler would follow the links in node_modules to the siblings' sources and compile those into this package.
 */
function pathsToSiblings(home, from) {
  const manifests = globSync('packages/*/package.json', { cwd: root })
  const folders = new Map(manifests.map((file) => [readJson(root, file).name, join(root, dirname(file))]))
  return Object.fromEntries(
    siblings(readJson(home, 'package.json'), folders).flatMap((folder) => {
      const { name, exports } = readJson(folder, 'dist/package.json')
      return Object.entries(exports)
        .filter(([, entry]) => entry.types !== undefined)
        .map(([door, { types }]) => [join(name, door), [relative(from, join(folder, 'dist', types))]])
    }),
  )
}

async function build(home) {
  const source = readJson(home, 'package.json')
  if (source.private) throw new UserError(`${source.name} is private; only published packages are built`)
  const pages = [join(home, 'README.md'), join(root, 'LICENSE')]
  for (const page of pages)
    if (!existsSync(page)) throw new UserError(`${source.name} cannot be published without ${page}`)
  const dist = join(home, 'dist')
  rmSync(dist, { recursive: true, force: true })
  const cache = join(home, '.turbo')
  mkdirSync(cache, { recursive: true })
  const config = join(cache, 'tsconfig.build.json')
  const compilerOptions = {
    noEmit: false,
    rootDir: '../src',
    outDir: '../dist',
    declaration: true,
    sourceMap: true,
    paths: pathsToSiblings(home, cache),
  }
  const include = ['../src']
  const exclude = ['*.test.ts', '*.test-d.ts', '*.fixture.ts'].map((sources) => `../src/**/${sources}`)
  writeFileSync(config, JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, include, exclude }))
  const code = await foreground(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', config])
  if (code !== 0) return code

  const manifest = publishedManifest(source)
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  for (const asset of globSync('src/**/*.*', { cwd: home, exclude: (path) => /\.ts$/.test(path) })) {
    cpSync(join(home, asset), join(dist, relative('src', asset)))
  }
  for (const file of pages) copyFileSync(file, join(dist, basename(file)))
  const missing = Object.values(manifest.exports)
    .flatMap((entry) => (typeof entry === 'string' ? [entry] : Object.values(entry)))
    .filter((file) => !existsSync(join(dist, file)))
  for (const file of missing) console.error(`${manifest.name} exports ${file}, which does not exist`)
  return missing.length === 0 ? 0 : 1
}

if (process.argv[1] === import.meta.filename) process.exit(await build(process.cwd()).catch(explainAndExit))
