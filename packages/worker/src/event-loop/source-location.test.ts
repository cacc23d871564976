// Tests the source location that is reported for a stack.
import { expect, it } from 'vitest'
import { type Frame, locationOf } from './source-location.ts'

const URLS: Readonly<Record<string, string>> = {
  handler: 'file:///app/src/handlers/digest.ts',
  odd: 'file:///app/a%20b.ts',
  library: 'file:///app/node_modules/slow/index.js',
  node: 'node:child_process',
  evaluated: '',
}
const at = (scriptId: string, functionName: string, lineNumber: number): Frame => ({
  functionName,
  location: { scriptId, lineNumber },
})

it.each<[string, Frame[], string | undefined]>([
  ['function, file and line, counted from 1', [at('handler', 'spin', 6)], 'spin (/app/src/handlers/digest.ts:7)'],
  ['file and line when the function has no name', [at('handler', '', 0)], '/app/src/handlers/digest.ts:1'],
  ['a decoded path', [at('odd', 'spin', 0)], 'spin (/app/a b.ts:1)'],
  [
    'in the program that called Node and a library',
    [at('node', 'spawnSync', 900), at('library', 'go', 3), at('handler', 'digest', 11), at('handler', 'outer', 20)],
    'digest (/app/src/handlers/digest.ts:12)',
  ],
  [
    'in a library when no code of the program is on the stack',
    [at('node', 'emit', 5), at('library', 'onData', 3)],
    'onData (/app/node_modules/slow/index.js:4)',
  ],
  ['undefined when Node itself runs', [at('node', 'processTimers', 5), at('evaluated', '', 0)], undefined],
  ['undefined in an unknown script', [at('unknown', 'f', 0)], undefined],
])('the location is %s', (_, frames, location) => {
  expect(locationOf(frames, (script) => URLS[script])).toBe(location)
})
