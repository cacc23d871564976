// The lock file is complete for every platform, contains no download addresses and is accepted by `npm ci`.
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { completed, downloadAddresses, missingOptionals, platformOf } from './complete-lock.mjs'
import { run } from './system/programs.mjs'

const root = join(import.meta.dirname, '..')
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))

describe('the platform in a package name', () => {
  it.each([
    ['@biomejs/cli-darwin-arm64', { os: ['darwin'], cpu: ['arm64'] }],
    ['@biomejs/cli-linux-x64-musl', { os: ['linux'], cpu: ['x64'], libc: ['musl'] }],
    ['@rolldown/binding-linux-arm64-gnu', { os: ['linux'], cpu: ['arm64'], libc: ['glibc'] }],
    ['@oxc-parser/binding-linux-arm-gnueabihf', { os: ['linux'], cpu: ['arm'], libc: ['glibc'] }],
    ['@oxc-parser/binding-win32-x64-msvc', { os: ['win32'], cpu: ['x64'] }],
    ['@turbo/windows-64', { os: ['win32'], cpu: ['x64'] }],
    ['fsevents', {}],
  ])('%s', (name, platform) => expect(platformOf(name)).toEqual(platform))
})

describe('a completed lock file', () => {
  const small = {
    lockfileVersion: 3,
    packages: {
      '': { name: 'root' },
      'node_modules/here': { version: '1.0.0', link: true, resolved: 'packages/here' },
      'node_modules/tool': {
        version: '2.0.0',
        dev: true,
        resolved: 'https://example.org/tool.tgz',
        optionalDependencies: { 'tool-darwin-arm64': '2.0.0', 'tool-linux-x64': '2.0.0' },
      },
      'node_modules/tool/node_modules/tool-linux-x64': {
        version: '2.0.0',
        optional: true,
        os: ['linux'],
        cpu: ['x64'],
      },
    },
  }

  it('missing entries are added; links and nested packages stay', () => {
    const { packages } = JSON.parse(JSON.stringify(completed(small)))
    expect(packages['node_modules/tool-darwin-arm64']).toEqual({
      version: '2.0.0',
      cpu: ['arm64'],
      dev: true,
      optional: true,
      os: ['darwin'],
    })
    expect(packages['node_modules/tool-linux-x64']).toBeUndefined()
    expect(packages['node_modules/tool'].resolved).toBeUndefined()
    expect(packages['node_modules/here'].resolved).toBe('packages/here')
  })

  it('completing a complete file changes nothing', () => {
    expect(completed(completed(small))).toEqual(completed(small))
  })

  it('a version range is refused', () => {
    const packages = { 'node_modules/tool': { version: '1.0.0', optionalDependencies: { other: '^1.0.0' } } }
    expect(() => completed({ packages })).toThrow('node_modules/tool depends on other ^1.0.0')
  })
})

describe('package-lock.json', () => {
  const copy = mkdtempSync(join(tmpdir(), 'bullpen-lock-'))
  afterAll(() => rmSync(copy, { recursive: true, force: true }))

  it('has an entry for every optional dependency', () => expect(missingOptionals(lock)).toEqual([]))

  it('has no download addresses', () => expect(downloadAddresses(lock)).toEqual([]))

  it('is accepted by npm ci', async () => {
    const workspaces = Object.keys(lock.packages).filter((path) => !path.includes('node_modules') && path !== '')
    for (const file of [
      'package-lock.json',
      '.npmrc',
      ...['.', ...workspaces].map((dir) => join(dir, 'package.json')),
    ]) {
      mkdirSync(dirname(join(copy, file)), { recursive: true })
      copyFileSync(join(root, file), join(copy, file))
    }
    const { code, stderr } = await run('npm', ['ci', '--dry-run', '--ignore-scripts', '--prefer-offline'], {
      cwd: copy,
    })
    expect(stderr).not.toContain('from lock file')
    expect(code).toBe(0)
  })
})
