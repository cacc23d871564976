// Which Prometheus is used, on simulated machines.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { resolvePrometheus } from './programs.mjs'

/** A machine on which nothing is installed, except what a test adds. */
function simulate({ programs = [], ...overrides } = {}) {
  const dir = join(temporary(), 'prometheus')
  const ran = []
  const on = new Set(programs)
  const world = {
    env: {},
    mayInstall: false,
    dir,
    say: () => {},
    isRoot: true,
    find: (name) => (on.has(name) ? `/usr/bin/${name}` : undefined),
    async run(command, args, { cwd } = {}) {
      ran.push([command, ...args].join(' ').replaceAll(/\S*prometheus-\w+\//g, ''))
      if (args[0] === 'download') writeFileSync(join(cwd, 'prometheus_2_amd64.deb'), '')
      if (args[0] === 'add') for (const name of ['prometheus', 'promtool']) on.add(name)
      if (command === 'dpkg-deb') {
        mkdirSync(join(args[2], 'usr/bin'), { recursive: true })
        for (const name of ['prometheus', 'promtool']) writeFileSync(join(args[2], 'usr/bin', name), 'program')
      }
      return { code: 0, stdout: '', stderr: '' }
    },
    ...overrides,
  }
  return { world, ran, dir }
}

function temporary() {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-prometheus-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

it('the programs on PATH come first, and nothing is installed', async () => {
  const { world, ran } = simulate({ programs: ['prometheus', 'promtool', 'apt-get'], mayInstall: true })
  expect(await resolvePrometheus(world)).toEqual({ prometheus: '/usr/bin/prometheus', promtool: '/usr/bin/promtool' })
  expect(ran).toEqual([])
})

it('on Debian the package is unpacked and not installed, because it would start a service, and is downloaded only once', async () => {
  const { world, ran, dir } = simulate({ programs: ['apt-get'], mayInstall: true })
  const { promtool } = await resolvePrometheus(world)
  expect(promtool).toBe(join(dir, 'usr/bin/promtool'))
  expect(readFileSync(promtool, 'utf8')).toBe('program')
  expect(await resolvePrometheus(world)).toMatchObject({ promtool })
  expect(ran).toEqual([
    'apt-get update -q',
    'apt-get download -q prometheus',
    'dpkg-deb --extract prometheus_2_amd64.deb unpacked',
  ])
})

it('other package managers install it', async () => {
  const { world, ran } = simulate({ programs: ['apk'], mayInstall: true })
  expect(await resolvePrometheus(world)).toMatchObject({ prometheus: '/usr/bin/prometheus' })
  expect(ran).toEqual(['apk add --no-cache prometheus'])
})

it('without consent nothing is installed, and the error says what to do', async () => {
  const { world, ran } = simulate({ programs: ['apt-get'], isRoot: false })
  await expect(resolvePrometheus(world)).rejects.toThrow(
    /install Prometheus: +sudo apt-get install -y prometheus[\s\S]*INSTALL_PROMETHEUS=1/,
  )
  expect(ran).toEqual([])
})

it('a download that fails leaves nothing behind, and the error says what to do', async () => {
  const { world, dir } = simulate({
    programs: ['apt-get'],
    mayInstall: true,
    run: async () => ({ code: 100, stdout: '', stderr: '' }),
  })
  await expect(resolvePrometheus(world)).rejects.toThrow('Prometheus is needed')
  expect(existsSync(dir)).toBe(false)
})
