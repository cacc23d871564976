// Which Chromium and which Python tests use, on simulated machines.
import { expect, it } from 'vitest'
import { resolveProgram } from './required-programs.mjs'

/** A machine that has these programs. Its package manager adds `installs`. */
function simulate({ programs = [], broken = [], installs = [], env = {}, isRoot = true } = {}) {
  const ran = []
  const on = new Set(programs)
  const world = {
    env,
    isRoot,
    say: () => {},
    find: (name) => (on.has(name) ? `/usr/bin/${name}` : undefined),
    works: async (path) => !broken.includes(path),
    async run(command, args) {
      ran.push([command, ...args].join(' '))
      if (args.includes('install')) for (const name of installs) on.add(name)
      return { code: 0, stdout: '', stderr: '' }
    },
  }
  return { world, ran }
}

it('a program on PATH comes first, and nothing is installed', async () => {
  const { world, ran } = simulate({ programs: ['chromium', 'apt-get'], env: { INSTALL_CHROMIUM: '1' } })
  expect(await resolveProgram('chromium', world)).toBe('/usr/bin/chromium')
  expect(ran).toEqual([])
})

it('a program that does not work is passed over', async () => {
  const { world } = simulate({ programs: ['chromium', 'google-chrome'], broken: ['/usr/bin/chromium'] })
  expect(await resolveProgram('chromium', world)).toBe('/usr/bin/google-chrome')
})

it.each([
  ['chromium', 'INSTALL_CHROMIUM', 'chromium'],
  ['python', 'INSTALL_PYTHON', 'python3'],
])('with consent the package manager installs %s', async (program, consent, name) => {
  const { world, ran } = simulate({ programs: ['apt-get'], installs: [name], env: { [consent]: '1' } })
  expect(await resolveProgram(program, world)).toBe(`/usr/bin/${name}`)
  expect(ran).toEqual(['apt-get update -q', `apt-get install -y -q ${name}`])
})

it.each([
  ['chromium', {}, /^Chromium is needed[\s\S]*sudo apt-get install -y chromium\n.*INSTALL_CHROMIUM=1$/],
  ['chromium', { INSTALL_CHROMIUM: '0', INSTALL_PYTHON: '1' }, /^Chromium is needed[\s\S]*INSTALL_CHROMIUM=1$/],
  ['python', {}, /^Python 3 is needed[\s\S]*sudo apt-get install -y python3\n.*INSTALL_PYTHON=1$/],
])('without consent nothing is installed, and the error says what to do: %s', async (program, env, message) => {
  const { world, ran } = simulate({ programs: ['apt-get'], env, isRoot: false })
  await expect(resolveProgram(program, world)).rejects.toThrow(message)
  expect(ran).toEqual([])
})

it('an installation that provides nothing ends with the same error', async () => {
  const { world, ran } = simulate({ programs: ['apt-get'], env: { INSTALL_CHROMIUM: '1' } })
  await expect(resolveProgram('chromium', world)).rejects.toThrow('Chromium is needed')
  expect(ran).toHaveLength(2)
})

it('a machine without a known package manager is told what to install', async () => {
  await expect(resolveProgram('python', simulate().world)).rejects.toThrow(/Do one of these:\n {2}install Python 3$/)
})
