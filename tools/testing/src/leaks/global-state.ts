// Tracks the state of the process that a later test file in the same process would find changed.

export interface GlobalState {
  /** Returns one line for each change. */
  list(): readonly string[]
}

/** The global objects that tests replace, such as by fake timers. */
const GLOBALS = ['setTimeout', 'setInterval', 'setImmediate', 'Date', 'performance', 'fetch'] as const

/** Compares later state with the state now. */
export function trackGlobalState(): GlobalState {
  const before = read()
  return {
    list() {
      const now = read()
      const names = [...new Set([...before.keys(), ...now.keys()])]
      return names.filter((name) => before.get(name) !== now.get(name)).map((name) => `changed ${name}`)
    },
  }
}

function read(): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>([
    ...Object.entries(process.env).map(([name, value]) => [`environment variable ${name}`, value] as const),
    ...GLOBALS.map((name) => [`global ${name}`, globalThis[name]] as const),
    ['process.argv', process.argv.join('\n')],
    ['process.execArgv', process.execArgv.join('\n')],
    ['working directory', process.cwd()],
  ])
}
