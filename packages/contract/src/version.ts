// The version of this release. A test checks that it matches package.json.

export const VERSION = '0.2.0'
