// The platform in one terminal: brings it up, says where things are, and takes it down on Ctrl-C.
import { readOptions } from './options.mjs'
import { runHere } from './run-here.mjs'

const { values } = readOptions('npm start -- [--fresh]', { options: { fresh: { type: 'boolean', default: false } } })
await runHere({ fresh: values.fresh })
