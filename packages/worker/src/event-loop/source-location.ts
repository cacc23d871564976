// Where code runs, in words: from the call frames of the inspector to one function, file and line.
import { fileURLToPath } from 'node:url'

/** What is read of the inspector's frames; the innermost comes first. */
export interface Frame {
  readonly functionName: string
  /** Both count from 0. */
  readonly location: { readonly scriptId: string; readonly lineNumber: number }
}

const isNodes = (url: string): boolean => url === '' || url.startsWith('node:')
const isLibrarys = (url: string): boolean => url.includes('/node_modules/')

/**
 * `name (/path/of/file.ts:7)` of the innermost frame that is of the program's own code; where none is, of a library's.
 * Undefined where only Node itself runs.
 */
export function locationOf(
  frames: readonly Frame[],
  urlOf: (scriptId: string) => string | undefined,
): string | undefined {
  const locations = frames
    .map(({ functionName, location }) => ({
      name: functionName,
      url: urlOf(location.scriptId) ?? '',
      line: location.lineNumber + 1,
    }))
    .filter(({ url }) => !isNodes(url))
  const location = locations.find(({ url }) => !isLibrarys(url)) ?? locations[0]
  if (location === undefined) return undefined
  const file = location.url.startsWith('file:') ? fileURLToPath(location.url) : location.url
  return location.name === '' ? `${file}:${location.line}` : `${location.name} (${file}:${location.line})`
}
