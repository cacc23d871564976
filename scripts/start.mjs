// npm start: runs Redis, the API and two workers in one terminal until Ctrl-C.
import { runInTerminal } from './platform/run-in-terminal.mjs'
import { readOptions } from './system/options.mjs'

const { values } = readOptions(
  `npm start -- [--fresh] [--install-redis]

Starts Redis, the API and two workers, and prints where they are. Ctrl-C drains the workers and stops everything.

  --fresh          delete all stored tasks first
  --install-redis  install Redis with the system's package manager if this machine has none`,
  {
    options: {
      fresh: { type: 'boolean', default: false },
      'install-redis': { type: 'boolean', default: false },
    },
  },
)
await runInTerminal({ fresh: values.fresh, installRedis: values['install-redis'] })
