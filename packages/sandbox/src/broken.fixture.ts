// A handler's module that can't be imported.
throw new RangeError('broken at import')
