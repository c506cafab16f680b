// Loaded before the suite: what it listens on without an address is for this machine only.
//
// Not by a host given to `listen`: that is looked up first, and the suite asks for its port before that is done.
const net = require('node:net');

const bind = net.Server.prototype._listen2;
net.Server.prototype._listen2 = function (address, port, addressType, ...rest) {
  return address === null ? bind.call(this, '127.0.0.1', port, 4, ...rest) : bind.call(this, address, port, addressType, ...rest);
};
