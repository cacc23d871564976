// The platform in one terminal: brings it up, says where things are, and takes it down on Ctrl-C.
import { parseArgs } from 'node:util'
import { runHere } from './run-here.mjs'

const { values } = parseArgs({ options: { fresh: { type: 'boolean', default: false } } })
await runHere({ fresh: values.fresh })
